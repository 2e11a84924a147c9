from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.db import models

if TYPE_CHECKING:
    AnyTextField = models.TextField[Any, Any]  # Field is generic only in the type stubs.
else:
    AnyTextField = models.TextField


class OrderedJSONField(AnyTextField):
    """JSON stored as text: PostgreSQL's jsonb would sort a schema's properties, which models fill in order."""

    # Django's plugin for mypy reads these types: any JSON value can be stored and read.
    _pyi_private_set_type: Any
    _pyi_private_get_type: Any

    def get_prep_value(self, value: Any) -> str | None:
        return None if value is None else json.dumps(value, ensure_ascii=False, allow_nan=False)

    def from_db_value(self, value: str | None, *_: Any) -> Any:
        return None if value is None else json.loads(value)

    def to_python(self, value: Any) -> Any:
        return value

    def value_to_string(self, obj: models.Model) -> Any:
        # `dumpdata` calls this method for the value itself, which `loaddata` passes to `to_python`.
        return self.value_from_object(obj)
