"""Template filters of Django's own lists and forms: `{% load tables %}`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django import template
from django.utils.html import escape, strip_tags
from django.utils.safestring import SafeString, mark_safe

from core.site.display import contents

register = template.Library()


@register.filter
def labelled(cells: Iterable[SafeString], headers: Iterable[Mapping[str, Any]]) -> Iterator[SafeString]:
    """Yields the cells of a row, each with the text of its column's header, which narrow windows show beside it."""
    for cell, header in zip(cells, headers, strict=False):
        label = strip_tags(str(header["text"])).strip()
        shown = escape(label[:1].upper() + label[1:])
        tag = cell[1:3]
        yield mark_safe(cell.replace(f"<{tag}", f'<{tag} data-label="{shown}"', 1))  # noqa: S308 - a cell of Django


@register.filter
def readonly(field: Any) -> Any:
    """Returns the contents of a field that cannot be changed, in the formats of all pages."""
    return contents(field)
