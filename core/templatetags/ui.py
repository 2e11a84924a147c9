"""The kit's template tags and filters: `{% load ui %}`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from core.ui import formats
from core.ui.filters import Filters
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

_ID_CHARACTERS = 8
# The stylesheet gives each kind a sign of its own, since colours alone tell some readers nothing.
_KINDS = {
    **dict.fromkeys(("success", "ok", "healthy", "active", "completed", "closed", "enabled", "passing"), "good"),
    **dict.fromkeys(("cancelled", "degraded", "paused", "half_open", "warning", "inconclusive", "expired"), "warn"),
    **dict.fromkeys(("error", "refused", "failed", "failing", "down", "open", "rolled_back", "revoked"), "bad"),
}


@register.inclusion_tag("ui/panel.html", takes_context=True)
def panel(context: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Places a panel with its heading; what it shows arrives later in the same response."""
    found: Panel = context["panels"][name]
    return {"panel": found, "marker": mark_safe(marker(found.name)), "request": context["request"]}  # noqa: S308


@register.simple_tag
def panel_content(name: str) -> SafeString:
    """Places a panel's content alone, without a heading of its own."""
    return mark_safe(marker(name))  # noqa: S308 - a name of the code, in a comment


@register.inclusion_tag("ui/table.html")
def table(shown: Table) -> dict[str, Any]:
    return {"table": shown}


@register.inclusion_tag("ui/filters.html")
def filters(shown: Filters) -> dict[str, Any]:
    return {"filters": shown}


@register.simple_tag
def plot(shown: Drawing) -> SafeString:
    """Draws a plot of any kind."""
    return render(shown)


@register.inclusion_tag("ui/tiles.html")
def tiles(shown: Sequence[Tile]) -> dict[str, Any]:
    return {"tiles": shown}


@register.simple_tag
def id_link(href: str, identifier: object) -> SafeString:
    """Returns a link of an id's first characters; the whole id is its title and `data-id`."""
    whole = str(identifier)
    shown = whole if len(whole) <= _ID_CHARACTERS + 4 else f"{whole[:_ID_CHARACTERS]}…"
    if not href:
        return format_html('<code title="{}">{}</code>', whole, shown)
    return format_html('<a data-id="{}" href="{}" title="{}"><code>{}</code></a>', whole, href, whole, shown)


@register.simple_tag
def status(value: object, kind: str = "", label: str = "") -> SafeString:
    """Returns a badge of a state. Without a kind the state's usual one is taken."""
    text = str(value)
    chosen = kind or _KINDS.get(text, "neutral")
    shown = label or text.replace("_", " ")
    return format_html('<span class="badge {}">{}</span>', chosen, shown)


@register.filter
def get(mapping: Mapping[str, Any], key: str) -> Any:
    return mapping.get(key)
