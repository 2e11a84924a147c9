"""Removes from JSON what databases refuse: null characters, halves of surrogate pairs, infinite numbers. Pure."""

from __future__ import annotations

import math
import re
from typing import Any, TypeVar

# PostgreSQL refuses null characters, and no store takes half of a surrogate pair.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")

T = TypeVar("T")


def storable(value: T) -> T:
    cleaned: Any = _cleaned(value)
    same: T = cleaned
    return same


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return _UNSTORABLE.sub("\ufffd", value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    if isinstance(value, dict):
        return {_cleaned(name): _cleaned(item) for name, item in value.items()}
    return value
