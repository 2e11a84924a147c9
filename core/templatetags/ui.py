from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django import template
from django.forms import BoundField
from django.templatetags.static import static
from django.utils.html import format_html
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


@register.simple_tag
def icon(name: str) -> SafeString:
    """Draws a symbol of `icons.svg`, which says nothing to readers of the screen."""
    return format_html('<svg class="i" aria-hidden="true"><use href="{}#{}"/></svg>', static("core/ui/icons.svg"), name)


def _chosen_text(field: BoundField) -> str:
    value, choices = field.value(), list(getattr(field.field, "choices", ()))
    if value is None and choices:
        # What a browser chooses.
        value = choices[0][0]
    return "" if value is None else str(value)


@register.simple_tag
def disclosure(field: BoundField) -> SafeString:
    """Returns the attributes of a field that is shown only for some choices of another field of its form.

    `shown_when` of the form's class has the other field and those choices by the field's name; `*` stands for any. A
    field with errors is shown.
    """
    name, values = getattr(field.form, "shown_when", {}).get(field.name, ("", ()))
    if name not in field.form.fields:
        return SafeString("")
    text = _chosen_text(field.form[name])
    is_shown = field.errors or text in values or (text and "*" in values)
    return format_html(
        ' data-shown-when="{}" data-values="{}"{}',
        field.form[name].html_name, "|".join(values), SafeString("" if is_shown else " data-off"),
    )  # fmt: skip


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
