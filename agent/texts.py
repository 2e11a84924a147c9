"""Texts of conversations: titles, and removal of characters that databases refuse. Pure."""

from __future__ import annotations

import math
import re
from typing import Any, TypeVar

_TITLE_CHARACTERS = 80
# PostgreSQL refuses null characters, and no store takes half of a surrogate pair.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")

T = TypeVar("T")


def title_of(message: str) -> str:
    """Returns the first words of a message, cut between words where there are any."""
    text = " ".join(storable(message).split())
    if len(text) <= _TITLE_CHARACTERS:
        return text
    cut = text[:_TITLE_CHARACTERS]
    before, blank, _ = cut.rpartition(" ")
    return f"{(before if blank else cut).rstrip(' ,;:')}…"


def storable(value: T) -> T:
    """Returns the same JSON without characters and numbers that a database refuses."""
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
