"""A plot's legend: series differ by colour, and by dashes or hatches as well."""

from __future__ import annotations

from datetime import tzinfo

from django.utils.safestring import SafeString

from core.ui.plots.labels import time_label, value_label
from core.ui.plots.markup import element, joined, linked
from core.ui.plots.scales import TimeScale
from core.ui.plots.shapes import Kind, Plot

COLOURS = 6
DASHES = ("", "6 4", "2 3", "10 3 2 3", "12 5", "1 5")


def colour(kind: Kind, index: int) -> str:
    return f"plot-{kind}" if kind else f"plot-s{index % COLOURS + 1}"


def dash(index: int) -> str:
    return DASHES[index % len(DASHES)]


def legend(plot: Plot) -> SafeString:
    items = [_item(plot, colour(series.kind, index), index, series.name) for index, series in enumerate(plot.series)]
    named = {series.name for series in plot.series}
    items += [_band(band.name) for band in plot.bands if band.name not in named]
    if len(items) < 2 and not plot.thresholds:
        return joined([])
    items += [
        element("li", _line(f"plot-{one.kind or 'warn'}", "4 3"), f"{one.name} {value_label(plot.unit, one.value)}")
        for one in plot.thresholds
    ]
    return element("ul", *items, class_="plot-legend")


def _item(plot: Plot, colour_class: str, index: int, name: str) -> SafeString:
    swatch = _line(colour_class, dash(index)) if plot.kind == "line" else _box(colour_class, index)
    return element("li", swatch, name)


def _line(colour_class: str, dashes: str) -> SafeString:
    line = element("line", x1=0, y1=5, x2=26, y2=5, stroke="currentColor", stroke_width=2.5, stroke_dasharray=dashes)
    return element("svg", line, width=26, height=10, class_=colour_class, aria_hidden="true")


def _box(colour_class: str, index: int) -> SafeString:
    drawn = element("rect", width=12, height=12, fill="currentColor", fill_opacity=0.35 if index else None)
    parts = [drawn, *hatch_lines(index, 12)]
    return element("svg", *parts, width=12, height=12, class_=colour_class, aria_hidden="true")


def _band(name: str) -> SafeString:
    box = element("rect", width=26, height=10, fill="currentColor", fill_opacity=0.2)
    return element("li", element("svg", box, width=26, height=10, aria_hidden="true"), name)


def hatch_lines(index: int, size: int) -> list[SafeString]:
    paths = (
        "",
        f"M0 {size}L{size} 0",
        f"M0 {size / 2:g}H{size}",
        f"M0 0L{size} {size}",
        f"M{size / 2:g} 0V{size}",
        f"M0 {size}L{size} 0M0 0L{size} {size}",
    )
    path = paths[index % len(paths)]
    return [element("path", d=path, fill="none", stroke="currentColor", stroke_width=2)] if path else []


def mark_list(plot: Plot, times: TimeScale, zone: tzinfo) -> SafeString:
    items = [
        element("li", linked(mark.name, mark.href), " ", element("span", time_label(mark.time, times.step / 60, zone)))
        for mark in plot.marks
    ]
    return element("ul", *items, class_="plot-marks") if items else joined([])
