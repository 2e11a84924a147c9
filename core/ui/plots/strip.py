from __future__ import annotations

from datetime import datetime, tzinfo
from itertools import groupby

from django.utils.safestring import SafeString

from core.ui.plots.axes import time_axis_at
from core.ui.plots.labels import time_label
from core.ui.plots.markup import element, hidden, percent
from core.ui.plots.scales import TimeScale, time_scale
from core.ui.plots.shapes import State, Strip

_HEIGHT, _AXIS = 32, 24
_HEIGHTS: dict[State, int] = {"good": 14, "warn": 23, "bad": 32, "none": 3}
_NAMES: dict[State, str] = {"good": "good", "warn": "degraded", "bad": "bad", "none": "no data"}
_GAP = 0.06


def render_strip(strip: Strip, zone: tzinfo, now: datetime) -> SafeString:
    caption = element("figcaption", strip.title, class_="" if strip.caption else "sr")
    cells = sorted((cell for cell in strip.cells if cell[0] <= now), key=lambda cell: cell[0])
    if not cells:
        return element("figure", caption, element("p", strip.empty, class_="muted"), class_="plot")
    times = time_scale([start for start, _, _ in cells], strip.step, now)
    rects = [_cell(times, index, state) for index, (_, state, _) in enumerate(cells)]
    drawn = element(
        "svg",
        *rects,
        time_axis_at(times, zone, _HEIGHT),
        class_="strip-svg",
        width="100%",
        height=_HEIGHT + _AXIS,
        role="img",
        aria_label=_essence(strip, [state for _, state, _ in cells]),
    )
    return element("figure", caption, drawn, _table(strip, cells, times, zone), class_="plot strip")


def _cell(times: TimeScale, index: int, state: State) -> SafeString:
    begin, end = times.interval(index)
    height = _HEIGHTS[state]
    return element(
        "rect",
        x=percent(begin + (end - begin) * _GAP),
        y=_HEIGHT - height,
        width=percent((end - begin) * (1 - 2 * _GAP)),
        height=height,
        class_=f"plot-{'neutral' if state == 'none' else state}",
    )


def _essence(strip: Strip, states: list[State]) -> str:
    counts = {state: states.count(state) for state in _NAMES}
    named = ", ".join(f"{_NAMES[state]} {count} of {len(states)}" for state, count in counts.items() if count)
    return f"{strip.title}: {named}; latest {_NAMES[states[-1]]}"


def _table(strip: Strip, cells: list[tuple[datetime, State, str]], times: TimeScale, zone: tzinfo) -> SafeString:
    rows = []
    for (state, text), run in groupby(cells, key=lambda cell: (cell[1], cell[2])):
        first = next(run)[0]
        head = element("th", time_label(first, times.step, zone), scope="row")
        rows.append(element("tr", head, element("td", _NAMES[state]), element("td", text)))
    heads = element("tr", *(element("th", name, scope="col") for name in ("From", "State", "Detail")))
    table = element(
        "table", element("caption", strip.title), element("thead", heads), element("tbody", *rows), class_="plot-table"
    )
    return element("details", element("summary", "Values", hidden(f" of {strip.title}")), table, class_="plot-values")
