"""The pages that the apps add to the admin site. An app's `admin.py` imports its pages, as Django asks of tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from core.ui.pages import Page

    PageType = TypeVar("PageType", bound=type[Page])

_pages: dict[str, type[Page]] = {}


def register_page(page: PageType) -> PageType:
    """A class decorator. Raises ValueError for a name that another page has."""
    if _pages.setdefault(page.name, page) is not page:
        raise ValueError(f"there are two pages of the name {page.name!r}")
    return page


def registered_pages() -> Iterator[type[Page]]:
    return iter(_pages.values())
