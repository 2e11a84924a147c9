"""Takes long lists apart: databases bound how many values a query names, and one that names few locks few rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

_Item = TypeVar("_Item")

IDS_AT_ONCE = 500


def chunks(items: Sequence[_Item], size: int = IDS_AT_ONCE) -> Iterator[Sequence[_Item]]:
    """Yields the items in their order, `size` at a time."""
    return (items[start : start + size] for start in range(0, len(items), size))
