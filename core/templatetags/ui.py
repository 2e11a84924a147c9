from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django import template
from django.utils.safestring import SafeString, mark_safe

from core.audit.actors import actor_name
from core.ui import formats
from core.ui.filters import Filters
from core.ui.marks import id_link, status
from core.ui.panels import Panel, marker
from core.ui.plots.render import Drawing, render
from core.ui.tables import Table
from core.ui.tiles import Tile

register = template.Library()

for _format in (
    formats.money,
    formats.duration,
    formats.number,
    formats.compact,
    formats.share,
    formats.size,
    formats.moment,
    formats.day,
    formats.age,
):
    register.filter(_format.__name__, _format)

register.simple_tag(id_link)
register.simple_tag(status)


@register.inclusion_tag("ui/panel.html", takes_context=True)
def panel(context: Mapping[str, Any], name: str) -> dict[str, Any]:
    found: Panel = context["panels"][name]
    return {"panel": found, "marker": mark_safe(marker(found.name)), "request": context["request"]}  # noqa: S308


@register.simple_tag
def panel_content(name: str) -> SafeString:
    return mark_safe(marker(name))  # noqa: S308 - a name of the code, in a comment


@register.inclusion_tag("ui/table.html")
def table(shown: Table) -> dict[str, Any]:
    return {"table": shown}


@register.inclusion_tag("ui/filters.html")
def filters(shown: Filters) -> dict[str, Any]:
    return {"filters": shown}


@register.simple_tag
def plot(shown: Drawing) -> SafeString:
    return render(shown)


@register.inclusion_tag("ui/tiles.html")
def tiles(shown: Sequence[Tile]) -> dict[str, Any]:
    return {"tiles": shown}


register.filter("actor", actor_name)


@register.filter
def get(mapping: Mapping[str, Any], key: str) -> Any:
    return mapping.get(key)
