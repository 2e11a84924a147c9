from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib import admin
from django.core.checks import CheckMessage, Error, register
from django.urls import URLPattern

from core.rights.table import PAGES


@register
def every_page_has_a_line(**_: Any) -> list[CheckMessage]:
    return [
        Error(
            f"The page {name!r} of the admin has no line in core/rights/table.py that says who may open it.",
            hint="A table's pages need one `Rows` in MODELS, any other page its name and right in PAGES.",
            id="core.E001",
        )
        for name in page_names()
        if name not in PAGES
    ]


def page_names() -> Iterator[str]:
    return _names(admin.site.get_urls())


def _names(patterns: list[Any]) -> Iterator[str]:
    for pattern in patterns:
        if not isinstance(pattern, URLPattern):
            yield from _names(pattern.url_patterns)
        elif pattern.name is not None:
            yield pattern.name
