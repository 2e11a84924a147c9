"""Positions of values and times: per cent of a plot's width, pixels of its height.

Per cent lets a plot fill its place while its texts keep their size.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from core.ui.plots.shapes import Unit
from core.ui.plots.ticks import value_ticks

TOP, AREA, BOTTOM = 12, 164, 24
SLIM_AREA = 48
LINES_WIDTH = 1000
"""The units of width of the lines' own coordinates, which are stretched over the whole plot."""

_HOUR = timedelta(hours=1)
_EMPTY_AXIS = {Unit.SHARE: 0.1, Unit.MILLISECONDS: 100.0}
_HEADROOM = 0.02


@dataclass(frozen=True, slots=True)
class TimeScale:
    starts: Sequence[datetime]
    step: timedelta
    end: datetime

    @property
    def start(self) -> datetime:
        return self.starts[0]

    @property
    def is_going_on(self) -> bool:
        return self.end < self.starts[-1] + self.step

    def place(self, moment: datetime) -> float:
        """Returns per cent of the width, clamped to the range."""
        share = (moment - self.start) / (self.end - self.start)
        return min(max(share, 0.0), 1.0) * 100

    def interval(self, index: int) -> tuple[float, float]:
        return self.place(self.starts[index]), self.place(self.starts[index] + self.step)

    def middle(self, index: int) -> float:
        begin, end = self.interval(index)
        return (begin + end) / 2


def time_scale(starts: Sequence[datetime], step: timedelta | None, now: datetime) -> TimeScale:
    """`starts` must ascend, begin before `now`, and not be empty."""
    length = step or smallest_distance(starts)
    # The interval that is going on ends now; a plot shows at least its first minute.
    end = min(starts[-1] + length, max(now, starts[-1] + min(length, timedelta(minutes=1))))
    return TimeScale(starts, length, end)


def smallest_distance(starts: Sequence[datetime]) -> timedelta:
    distances = (later - earlier for earlier, later in pairwise(starts))
    return min((distance for distance in distances if distance), default=_HOUR)


@dataclass(frozen=True, slots=True)
class ValueScale:
    ticks: Sequence[float]
    area: int = AREA

    @property
    def height(self) -> int:
        return TOP + self.area + BOTTOM

    @property
    def step(self) -> float:
        return self.ticks[1] - self.ticks[0]

    def y(self, value: float) -> float:
        """Returns pixels from the area's upper edge, clamped to the area."""
        low, high = self.ticks[0], self.ticks[-1]
        return self.area * (1 - min(max((value - low) / (high - low), 0.0), 1.0))


def value_scale(values: Iterable[float], unit: Unit, *, from_zero: bool, area: int = AREA) -> ValueScale:
    found = list(values)
    low, high = min(found, default=0.0), max(found, default=0.0)
    if from_zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if high - low <= abs(high) * 1e-9:
        room = abs(high) * _HEADROOM or _EMPTY_AXIS.get(unit, 1.0)
        low, high = (low if from_zero else low - room), high + room
    if unit is Unit.SHARE and not from_zero and high <= 1:
        high = min(1.0, high + (high - low) * _HEADROOM)
    is_whole = unit in (Unit.COUNT, Unit.TOKENS) and all(value == int(value) for value in found)
    return ValueScale(value_ticks(low, high, unit, whole=is_whole), area)
