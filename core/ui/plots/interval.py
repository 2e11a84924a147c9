from __future__ import annotations

from django.utils.safestring import SafeString

from core.ui.plots.markup import element, joined, percent
from core.ui.plots.shapes import Interval

_HEIGHT, _MIDDLE = 26, 13
_MARGIN = 4
_ROOM = 0.08


def render_interval(interval: Interval) -> SafeString:
    ends = [0.0, interval.low, interval.high, interval.value]
    if interval.limit is not None:
        ends.append(interval.limit)
    low, high = min(ends), max(ends)
    room = (high - low) * _ROOM or 1.0
    low, high = low - room, high + room

    def x(value: float) -> str:
        return percent(_MARGIN + (100 - 2 * _MARGIN) * (value - low) / (high - low))

    parts = [
        element("line", x1="0%", x2="100%", y1=_MIDDLE, y2=_MIDDLE, class_="plot-grid"),
        element("line", x1=x(0), x2=x(0), y1=2, y2=_HEIGHT - 2, class_="interval-zero"),
        element("line", x1=x(interval.low), x2=x(interval.high), y1=_MIDDLE, y2=_MIDDLE, class_="interval-range"),
        *(
            element("line", x1=x(end), x2=x(end), y1=8, y2=18, class_="interval-range")
            for end in (interval.low, interval.high)
        ),
        element("circle", cx=x(interval.value), cy=_MIDDLE, r=4, fill="currentColor"),
    ]
    if interval.limit is not None:
        limit = x(interval.limit)
        parts.append(element("line", x1=limit, x2=limit, y1=2, y2=_HEIGHT - 2, class_="interval-limit"))
    return element(
        "svg",
        joined(parts),
        class_=f"interval {_kind(interval)}",
        role="img",
        width="100%",
        height=_HEIGHT,
        aria_label=_label(interval),
    )


def _kind(interval: Interval) -> str:
    limit, low, high = interval.limit, interval.low, interval.high
    if limit is None:
        return "plot-neutral"
    if limit < 0:
        limit, low, high = -limit, -high, -low
    if low < limit <= high:
        return "plot-neutral"
    return "plot-bad" if low >= limit else "plot-good"


def _label(interval: Interval) -> str:
    written = interval.label
    text = f"{interval.title}: {written(interval.value)}, from {written(interval.low)} to {written(interval.high)}"
    if interval.limit is None:
        return text
    return f"{text}; {interval.limit_name} {written(interval.limit)}"
