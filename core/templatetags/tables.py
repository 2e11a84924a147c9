"""Template filters of Django's own lists and forms: `{% load tables %}`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django import template
from django.utils.html import escape, format_html, strip_tags
from django.utils.safestring import SafeString, mark_safe

from core.site.display import contents
from core.ui.navigation import address_if_there

register = template.Library()


@register.filter
def labelled(cells: Iterable[SafeString], headers: Iterable[Mapping[str, Any]]) -> Iterator[SafeString]:
    """Yields the cells of a row, each with the text of its column's header, which narrow windows show beside it."""
    for cell, header in zip(cells, headers, strict=False):
        label = strip_tags(str(header["text"])).strip()
        shown = escape(label[:1].upper() + label[1:])
        tag = cell[1:3]
        yield mark_safe(cell.replace(f"<{tag}", f'<{tag} data-label="{shown}"', 1))  # noqa: S308 - a cell of Django


@register.simple_tag
def link_to_changes(table: Any, row: Any = None) -> str:
    """Returns a link to the page that changes the rows of a table, in the project of `row` if there is one; an empty
    text for a table whose own forms do."""
    project_id = table.project_of(row) if table.project_lookup and row is not None else None
    query = {"project": str(project_id)} if project_id else None
    href = address_if_there(table.page_of_changes, query=query) if table.page_of_changes else ""
    link = '<p class="notice">Changes are made on <a href="{}">the page of these rows</a>, which checks them.</p>'
    return format_html(link, href) if href else ""


@register.filter
def readonly(field: Any) -> Any:
    """Returns the contents of a field that cannot be changed, in the formats of all pages."""
    return contents(field)
