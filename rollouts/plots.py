"""Plots of the two arms over time, as SVG. Pure; made of numbers and fixed labels only, so that nothing needs
escaping."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any

BUCKETS = 80
"""The largest number of points of a line; values between two points are joined."""

_WIDTH, _HEIGHT = 640, 150
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 8, 8, 22
_SHARE_STEP = 0.1
_COLOURS = {"baseline": "#6b7280", "target": "#d97706"}


@dataclass(frozen=True, slots=True)
class _Sums:
    """The sums of one arm in one bucket of time."""

    requests: int = 0
    unanswered: int | None = None
    judged: int = 0
    errors: int = 0
    answered: int = 0
    latency_ms: int = 0
    priced: int = 0
    cost_usd: Decimal = Decimal(0)

    def plus(self, counts: Mapping[str, Any]) -> _Sums:
        return _Sums(
            self.requests + counts["requests"],
            # The first formula did not count allocated requests; its requests are those whose errors are judged.
            (self.unanswered or 0) + counts["unanswered"] if "unanswered" in counts else self.unanswered,
            self.judged + counts.get("judged", counts["requests"]),
            self.errors + counts["errors"],
            self.answered + sum(counts["latency"].values()),
            self.latency_ms + counts["latency_ms"],
            self.priced + sum(counts["cost"].values()),
            self.cost_usd + Decimal(counts["cost_usd"]),
        )


@dataclass(frozen=True, slots=True)
class Plot:
    title: str
    svg: str


@dataclass(frozen=True, slots=True)
class _Figure:
    """A figure that is plotted. `near_all` marks a share close to 100 %, whose axis shows only the part that varies."""

    title: str
    value: Callable[[_Sums, int], float | None]
    label: Callable[[float], str]
    near_all: bool = False

    def axis(self, values: Sequence[float]) -> tuple[float, float]:
        """Returns the ends of the axis, the lower one first."""
        if self.near_all:
            return max(0.0, min(math.floor(min(values, default=1.0) / _SHARE_STEP) * _SHARE_STEP, 1 - _SHARE_STEP)), 1.0
        return 0.0, max(values, default=0.0) or 1.0


def _ratio(total: float, count: int) -> float | None:
    return total / count if count else None


def _answered_share(sums: _Sums) -> float | None:
    return None if sums.unanswered is None else _ratio(sums.requests - sums.unanswered, sums.requests)


def _percent(value: float) -> str:
    return f"{value * 100:.3g} %"


_FIGURES = (
    _Figure("Requests per minute", lambda sums, minutes: sums.requests / minutes, lambda value: f"{value:.3g}"),
    _Figure("Answered requests", lambda sums, _: _answered_share(sums), _percent, near_all=True),
    _Figure("Error rate", lambda sums, _: _ratio(sums.errors, sums.judged), _percent),
    _Figure("Average latency", lambda sums, _: _ratio(sums.latency_ms, sums.answered), lambda value: f"{value:.4g} ms"),
    _Figure(
        "Cost per request", lambda sums, _: _ratio(float(sums.cost_usd), sums.priced), lambda value: f"${value:.3g}"
    ),
)


def plots(minutes: Iterable[Mapping[str, Any]]) -> list[Plot]:
    """Returns one plot for each figure that the minutes know, from stored `MinuteCounts` in order; none without
    minutes. A dotted line begins a stage."""
    rows = list(minutes)
    if not rows:
        return []
    first, last = rows[0]["minute"], rows[-1]["minute"]
    width = max(1, math.ceil((last - first + 1) / BUCKETS))
    arms: dict[str, dict[int, _Sums]] = {"baseline": {}, "target": {}}
    for row in rows:
        for arm, buckets in arms.items():
            bucket = (row["minute"] - first) // width
            buckets[bucket] = buckets.get(bucket, _Sums()).plus(row[arm])
    starts = [(new["minute"] - first) / width for old, new in pairwise(rows) if old["stage"] != new["stage"]]
    count = (last - first) // width + 1
    known = [figure for figure in _FIGURES if not figure.near_all or any("unanswered" in row["target"] for row in rows)]
    return [Plot(figure.title, _svg(figure, arms, starts, count, width)) for figure in known]


def _svg(
    figure: _Figure, arms: Mapping[str, Mapping[int, _Sums]], starts: Sequence[float], count: int, minutes: int
) -> str:
    lines = {arm: _points(figure, sums, minutes) for arm, sums in arms.items()}
    lowest, highest = figure.axis([value for points in lines.values() for _, value in points])
    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" role="img"'
        f' aria-label="{figure.title} of target and baseline" xmlns="http://www.w3.org/2000/svg">',
        f"<title>{figure.title}</title>",
        *_axes(figure.label(lowest) if lowest else "0", figure.label(highest), count * minutes),
        *(_stage_line(_x(start, count)) for start in starts),
        *(_line(arm, points, count, (lowest, highest)) for arm, points in lines.items()),
        "</svg>",
    ]
    return "".join(parts)


def _points(figure: _Figure, sums: Mapping[int, _Sums], minutes: int) -> list[tuple[int, float]]:
    values = ((bucket, figure.value(one, minutes)) for bucket, one in sorted(sums.items()))
    return [(bucket, value) for bucket, value in values if value is not None]


def _axes(lowest: str, highest: str, minutes: int) -> list[str]:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    text = 'font-size="11" fill="currentColor"'
    return [
        f'<path d="M{_LEFT} {_TOP}V{bottom}H{right}" fill="none" stroke="currentColor" stroke-opacity="0.4"/>',
        f'<text x="{_LEFT - 6}" y="{_TOP + 10}" text-anchor="end" {text}>{highest}</text>',
        f'<text x="{_LEFT - 6}" y="{bottom}" text-anchor="end" {text}>{lowest}</text>',
        f'<text x="{right}" y="{_HEIGHT - 6}" text-anchor="end" {text}>{minutes} min</text>',
    ]


def _stage_line(x: float) -> str:
    return (
        f'<path d="M{x:.1f} {_TOP}V{_HEIGHT - _BOTTOM}" stroke="currentColor" stroke-opacity="0.5"'
        ' stroke-dasharray="2 3"/>'
    )


def _line(arm: str, points: Sequence[tuple[int, float]], count: int, axis: tuple[float, float]) -> str:
    lowest, highest = axis
    places = [(_x(bucket + 0.5, count), _y((value - lowest) / (highest - lowest))) for bucket, value in points]
    colour = _COLOURS[arm]
    if len(places) == 1:
        [(x, y)] = places
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>'
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>'


def _x(place: float, count: int) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * place / count


def _y(share: float) -> float:
    return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - share)
