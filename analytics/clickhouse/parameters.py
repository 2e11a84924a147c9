"""Python values as server-side query parameters."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any


def bind(params: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values in forms that the driver renders faithfully. Raises TypeError for None and ValueError for a
    time without a zone.

    The driver cuts times to seconds and would send None as the text 'NULL'. A time becomes its UTC text, so its
    placeholder names the zone: `{start:DateTime64(6, 'UTC')}`.
    """
    return {name: _bound(name, value) for name, value in params.items()}


def _bound(name: str, value: Any) -> Any:
    if value is None:
        raise TypeError(f"query parameter {name} is None; leave the condition out instead")
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, datetime):
        return _utc_text(name, value)
    if isinstance(value, (list, tuple)):
        return [_bound(name, item) for item in value]
    return value


def _utc_text(name: str, value: datetime) -> str:
    if value.tzinfo is None:
        raise ValueError(f"query parameter {name} is a time without a zone")
    precision = "%Y-%m-%d %H:%M:%S.%f" if value.microsecond else "%Y-%m-%d %H:%M:%S"
    return value.astimezone(UTC).strftime(precision)
