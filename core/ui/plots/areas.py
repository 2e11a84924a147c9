from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from django.utils.safestring import SafeString

from core.ui.plots.labels import number
from core.ui.plots.legend import COLOURS, colour, dash, hatch_lines
from core.ui.plots.markup import decimals, element, joined, percent
from core.ui.plots.scales import AREA, LINES_WIDTH, TOP, TimeScale, ValueScale
from core.ui.plots.shapes import Band, Plot, Series, Value

_HATCH = 6
_BAR_SHARE = 0.82
_SMALLEST_BAR = 1.5
_Point = tuple[int, float]


def lines(plot: Plot, times: TimeScale, values: ValueScale) -> SafeString:
    """Returns lines above bands. Lines have their own coordinates, stretched to the plot's width; points without
    neighbours are dots. The current interval is a hollow dot beside the line."""
    stretched = [_band(plot, band, times, values) for band in plot.bands]
    dots: list[SafeString] = []
    for index, series in enumerate(plot.series):
        colour_class = colour(series.kind, index)
        values_ended = series.values[:-1] if times.is_going_on else series.values
        if times.is_going_on and (latest := number(series.values[-1])) is not None:
            dots.append(_dot(times, values, (len(series.values) - 1, latest), colour_class, is_hollow=True))
        for run in _runs(values_ended):
            if len(run) > 1:
                places = [(times.middle(at) * LINES_WIDTH / 100, values.y(value)) for at, value in run]
                stretched.append(_line(places, colour_class, dash(index), is_alone=len(plot.series) == 1))
            else:
                dots.append(_dot(times, values, run[0], colour_class))
    drawn = element(
        "svg",
        *stretched,
        x=0,
        y=TOP,
        width="100%",
        height=AREA,
        viewBox=f"0 0 {LINES_WIDTH} {AREA}",
        preserveAspectRatio="none",
    )
    return joined([drawn, *dots])


def _dot(
    times: TimeScale, values: ValueScale, point: _Point, colour_class: str, *, is_hollow: bool = False
) -> SafeString:
    at, value = point
    place = {"cx": percent(times.middle(at)), "cy": TOP + values.y(value)}
    look = {"fill": "none", "stroke": "currentColor", "stroke_width": 2} if is_hollow else {"fill": "currentColor"}
    return element("circle", **place, r=3.5, **look, class_=colour_class)


def _line(places: Sequence[tuple[float, float]], colour_class: str, dashes: str, *, is_alone: bool) -> SafeString:
    line = element(
        "polyline",
        points=_points(places),
        fill="none",
        stroke="currentColor",
        stroke_width=2,
        stroke_linejoin="round",
        stroke_dasharray=dashes,
        vector_effect="non-scaling-stroke",
    )
    if not is_alone:
        return element("g", line, class_=colour_class)
    below = [*places, (places[-1][0], AREA), (places[0][0], AREA)]
    area = element("polygon", points=_points(below), fill="currentColor", fill_opacity=0.1)
    return element("g", area, line, class_=colour_class)


def _band(plot: Plot, band: Band, times: TimeScale, values: ValueScale) -> SafeString:
    same = [index for index, series in enumerate(plot.series) if series.name == band.name]
    pairs: list[tuple[int, float, float]] = []
    for index, (lower, upper) in enumerate(zip(band.lower, band.upper, strict=False)):
        low, high = number(lower), number(upper)
        if low is not None and high is not None:
            pairs.append((index, low, high))
    if not pairs:
        return joined([])
    edge = [(times.middle(at) * LINES_WIDTH / 100, values.y(high)) for at, _, high in pairs]
    back = [(times.middle(at) * LINES_WIDTH / 100, values.y(low)) for at, low, _ in reversed(pairs)]
    colour_class = colour(plot.series[same[0]].kind, same[0]) if same else "plot-neutral"
    return element(
        "polygon", points=_points([*edge, *back]), fill="currentColor", fill_opacity=0.16, class_=colour_class
    )


def _points(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{decimals(x)},{decimals(y)}" for x, y in places)


def _runs(values: Sequence[Value]) -> Iterator[list[_Point]]:
    found = [(index, number(value)) for index, value in enumerate(values)]
    for is_gap, run in groupby(found, key=lambda pair: pair[1] is None):
        if not is_gap:
            yield [(index, value) for index, value in run if value is not None]


def stacked_totals(plot: Plot) -> list[float]:
    return [
        sum(max(number(one) or 0.0, 0.0) for one in column)
        for column in zip(*(series.values for series in plot.series), strict=True)
    ]


def bars(plot: Plot, times: TimeScale, values: ValueScale, key: str) -> SafeString:
    beneath = [0.0] * len(plot.times)
    groups = []
    for index, series in enumerate(plot.series):
        drawn = [
            _bar(plot, times, values, (index, at), beneath[at], value)
            for at, one in enumerate(series.values)
            if (value := number(one)) is not None
        ]
        if plot.kind == "stacked":
            beneath = [low + max(number(one) or 0.0, 0.0) for low, one in zip(beneath, series.values, strict=True)]
        fill = f"url(#{key}-{index})" if index % COLOURS else "currentColor"
        groups.append(element("g", *drawn, class_=colour(series.kind, index), fill=fill))
    return joined(groups)


def _bar(
    plot: Plot, times: TimeScale, values: ValueScale, where: tuple[int, int], beneath: float, value: float
) -> SafeString:
    index, at = where
    begin, end = times.interval(at)
    begin, width = begin + (end - begin) * (1 - _BAR_SHARE) / 2, (end - begin) * _BAR_SHARE
    if plot.kind == "bars":
        width /= len(plot.series)
        begin += index * width
        beneath = 0.0
    top, bottom = sorted((values.y(beneath + value), values.y(beneath)))
    height = max(bottom - top, min(_SMALLEST_BAR, bottom)) if value else 0.0
    return element("rect", x=percent(begin), y=TOP + bottom - height, width=percent(width), height=height)


def hatches(plot: Plot, key: str) -> SafeString:
    if plot.kind == "line":
        return joined([])
    patterns = [_hatch(series, index, key) for index, series in enumerate(plot.series) if index % COLOURS]
    return element("defs", *patterns) if patterns else joined([])


def _hatch(series: Series, index: int, key: str) -> SafeString:
    ground = element("rect", width=_HATCH, height=_HATCH, fill="currentColor", fill_opacity=0.35)
    return element(
        "pattern",
        ground,
        *hatch_lines(index, _HATCH),
        id=f"{key}-{index}",
        width=_HATCH,
        height=_HATCH,
        patternUnits="userSpaceOnUse",
        class_=colour(series.kind, index),
    )
