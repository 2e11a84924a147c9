"""Fields of JSON bodies that several apps take."""

from __future__ import annotations

import math
from typing import Any

from rest_framework import serializers
from typing_extensions import override


class NumberField(serializers.FloatField):
    """A JSON number: neither true nor text, and finite."""

    @override
    def to_internal_value(self, data: Any) -> float:
        if isinstance(data, bool | str) or (isinstance(data, float) and not math.isfinite(data)):
            self.fail("invalid")
        return super().to_internal_value(data)
