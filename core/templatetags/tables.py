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
    for cell, header in zip(cells, headers, strict=False):
        label = strip_tags(str(header["text"])).strip()
        shown = escape(label[:1].upper() + label[1:])
        tag = cell[1:3]
        yield mark_safe(cell.replace(f"<{tag}", f'<{tag} data-label="{shown}"', 1))  # noqa: S308 - a cell of Django


@register.simple_tag
def link_to_changes(table: Any, row: Any = None) -> str:
    project_id = table.project_of(row) if table.project_lookup and row is not None else None
    query = {"project": str(project_id)} if project_id else None
    href = address_if_there(table.page_of_changes, query=query) if table.page_of_changes else ""
    link = '<p class="notice">Changes are made on <a href="{}">the page of these rows</a>, which checks them.</p>'
    return format_html(link, href) if href else ""


@register.filter
def readonly(field: Any) -> Any:
    return contents(field)
