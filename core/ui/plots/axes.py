from __future__ import annotations

from datetime import tzinfo

from django.utils.safestring import SafeString

from core.ui.plots.labels import tick_label, value_label
from core.ui.plots.markup import element, joined, percent
from core.ui.plots.scales import AREA, TOP, TimeScale, ValueScale
from core.ui.plots.shapes import Mark, Plot, Threshold, Unit
from core.ui.plots.ticks import spread, time_ticks

_TEXT_ROOM = 14
_EDGE = 95.0
# The width of a character in per cent of the width of a narrow plot.
_CHARACTER_ROOM = 2.4


def value_axis(values: ValueScale, unit: Unit) -> SafeString:
    parts = []
    # The labels of a slim plot would touch.
    for tick in values.ticks if values.area == AREA else (values.ticks[0], values.ticks[-1]):
        y = TOP + values.y(tick)
        parts.append(element("line", x1=0, y1=y, x2="100%", y2=y, class_="plot-grid"))
        parts.append(element("text", tick_label(unit, tick, values.step), x=-8, y=y + 4, text_anchor="end"))
    return element("g", *parts, class_="plot-axis")


def time_axis(times: TimeScale, values: ValueScale, zone: tzinfo) -> SafeString:
    return time_axis_at(times, zone, TOP + values.area)


def time_axis_at(times: TimeScale, zone: tzinfo, bottom: int) -> SafeString:
    parts = []
    for moment, label, is_first_rank in spread(time_ticks(times.start, times.end, zone)):
        place = times.place(moment)
        rank = "" if is_first_rank else "plot-fine"
        parts.append(
            element(
                "line",
                x1=percent(place),
                y1=bottom,
                x2=percent(place),
                y2=bottom + 4,
                class_=f"plot-tick {rank}".strip(),
            )
        )
        anchor = "end" if place > _EDGE else "middle"
        parts.append(element("text", label, x=percent(place), y=bottom + 18, text_anchor=anchor, class_=rank))
    return element("g", *parts, class_="plot-axis")


def thresholds(plot: Plot, values: ValueScale) -> SafeString:
    return joined(_threshold(one, plot.unit, TOP + values.y(float(one.value))) for one in plot.thresholds)


def _threshold(threshold: Threshold, unit: Unit, y: float) -> SafeString:
    label = f"{threshold.name} {value_label(unit, threshold.value)}"
    text_y = y - 5 if y > TOP + _TEXT_ROOM else y + _TEXT_ROOM
    return element(
        "g",
        element("line", x1=0, y1=y, x2="100%", y2=y, stroke="currentColor", stroke_width=1.5, stroke_dasharray="4 3"),
        element("text", label, x="100%", dx=-4, y=text_y, text_anchor="end"),
        class_=f"plot-threshold plot-{threshold.kind or 'warn'}",
    )


def marks(plot: Plot, times: TimeScale) -> SafeString:
    parts: list[SafeString] = []
    taken_until = -1.0
    for mark in sorted(plot.marks, key=lambda one: one.time):
        if not times.start <= mark.time <= times.end:
            continue
        place, width = times.place(mark.time), len(mark.name) * _CHARACTER_ROOM
        is_left = place + width > 100
        begin = place - width if is_left else place
        has_room = begin > taken_until
        parts.append(_mark(mark, place, is_left=is_left, is_named=has_room))
        taken_until = begin + width if has_room else taken_until
    return joined(parts)


def _mark(mark: Mark, place: float, *, is_left: bool, is_named: bool) -> SafeString:
    x = percent(place)
    anchor = "end" if is_left else "start"
    name = element("text", mark.name, x=x, dx=-4 if is_left else 4, y=TOP + 9, text_anchor=anchor)
    line = element(
        "line", x1=x, y1=TOP, x2=x, y2=TOP + AREA, stroke="currentColor", stroke_width=1, stroke_dasharray="2 3"
    )
    return element("g", line, name if is_named else "", class_="plot-mark")
