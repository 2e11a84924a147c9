from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_pages: dict[str, type[Any]] = {}


def register_page(page: type[Any]) -> None:
    if _pages.setdefault(page.name, page) is not page:
        raise ValueError(f"there are two pages of the name {page.name!r}")


def registered_pages() -> Iterator[type[Any]]:
    return iter(_pages.values())
