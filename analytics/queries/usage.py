from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import TypeVar

from analytics.queries.rollup_ranges import DAYS, HOURS, MINUTES, TICK, Rollup, same
from analytics.queries.summed import BEGINS, Costs, Scope, TimedSums, TokenCosts, nothing, summed

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Interval(StrEnum):
    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"

    @property
    def length(self) -> timedelta:
        return timedelta(**{f"{self.value}s": 1})


@dataclass(frozen=True)
class IntervalFigures(TimedSums):
    """The requests that arrived in the interval that begins at `start`."""

    start: datetime


@dataclass(frozen=True)
class IntervalCosts(Costs):
    start: datetime


@dataclass(frozen=True)
class DayCosts(TokenCosts):
    """The costs of the requests of a day."""

    cache_read_tokens: int
    cache_write_tokens: int


@dataclass(frozen=True)
class StartedDayCosts(DayCosts):
    start: datetime


@dataclass(frozen=True)
class DayCost(DayCosts):
    date: date


IntervalRow = TypeVar("IntervalRow", IntervalFigures, IntervalCosts, StartedDayCosts)

_ROLLUPS: dict[Interval, Sequence[Rollup]] = {
    Interval.MINUTE: (MINUTES,),
    Interval.HOUR: (HOURS,),
    Interval.DAY: (DAYS, HOURS),
}
BEGINNING = {
    Interval.MINUTE: "toStartOfMinute({time}, 'UTC')",
    Interval.HOUR: "toStartOfHour({time}, 'UTC')",
    Interval.DAY: "toStartOfDay({time}, 'UTC')",
}


def list_usage(
    scope: Scope, interval: Interval, *, row: type[IntervalRow], limit: int, offset: int = 0
) -> tuple[int, list[IntervalRow]]:
    """The number of intervals in the range and one page, the latest first; intervals without requests are 0.

    Reads only the time of the page, and only the part of the outermost intervals that is in the range. Percentiles cost
    more than all other figures of a row.
    """
    length = interval.length
    last, count = _begin(scope.end, length), count_intervals(scope.start, scope.end, interval)
    latest, shown = last - min(offset, count) * length, min(limit, max(count - offset, 0))
    beginnings = [latest - step * length for step in range(shown)]
    if not beginnings:
        return count, []
    shown_scope = replace(
        scope, start=max(scope.start, beginnings[-1]), end=min(scope.end, beginnings[0] + length - TICK)
    )
    is_plain = interval is Interval.DAY and not issubclass(row, TimedSums)
    keys = {"start": same(BEGINNING[interval])}
    source = shown_scope.plain(keys=keys) if is_plain else shown_scope.of(*_ROLLUPS[interval], keys=keys)
    rows = {found.start: found for found in summed(row, source, by=keys, outer=BEGINS, name="usage")}
    return count, [rows.get(beginning) or nothing(row, start=beginning) for beginning in beginnings]


def count_intervals(start: datetime, end: datetime, interval: Interval) -> int:
    length = interval.length
    return (_begin(end, length) - _begin(start, length)) // length + 1


def list_beginnings(start: datetime, end: datetime, interval: Interval, *, limit: int) -> list[datetime]:
    """The starts of the latest `limit` intervals of the range, the earliest first."""
    length = interval.length
    last, count = _begin(end, length), min(count_intervals(start, end, interval), limit)
    return [last - step * length for step in reversed(range(count))]


def _begin(moment: datetime, length: timedelta) -> datetime:
    return _EPOCH + (moment - _EPOCH) // length * length
