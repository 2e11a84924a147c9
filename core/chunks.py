"""Splits long lists: databases bound the values per query, and short lists lock few rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

_Item = TypeVar("_Item")

IDS_AT_ONCE = 500


def chunks(items: Sequence[_Item], size: int = IDS_AT_ONCE) -> Iterator[Sequence[_Item]]:
    return (items[start : start + size] for start in range(0, len(items), size))
