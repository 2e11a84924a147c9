"""Sums up the requests in each minute, hour or day of a range of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from uuid import UUID

from analytics.clickhouse import client
from analytics.queries.range_totals import SUMS
from analytics.queries.rollup_ranges import (
    DAYS,
    HOURS,
    MINUTES,
    PLANNED,
    TICK,
    Key,
    Rollup,
    plain_rollups,
    totals,
    union,
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Interval(StrEnum):
    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"

    @property
    def length(self) -> timedelta:
        return timedelta(**{f"{self.value}s": 1})


@dataclass(frozen=True)
class IntervalRow:
    """The requests that arrived in the interval that begins at `start`. `latency_q` and `ttft_q` are p50, p95, p99 in
    ms; they are empty or not numbers without samples."""

    start: datetime
    requests: int = 0
    batched: int = 0
    errors: int = 0
    cancelled: int = 0
    unpriced: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: Decimal = Decimal(0)
    latency_sum_ms: int = 0
    latency_q: Sequence[float] = ()
    ttft_q: Sequence[float] = ()


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
_PERCENTILES = ("latency_q", "ttft_q")


def list_usage(
    project_id: UUID,
    start: datetime,
    end: datetime,
    interval: Interval,
    *,
    limit: int,
    offset: int,
    percentiles: bool = True,
    operation: str = "",
) -> tuple[int, list[IntervalRow]]:
    """Returns the number of intervals in the range and one page, the latest first; intervals without requests are 0.

    Only the time of the page is read, and of the outermost intervals only the part in the range. `latency_q` and
    `ttft_q` are empty without `percentiles`, which cost more than all the rest.
    """
    length = interval.length
    last, count = _begin(end, length), count_intervals(start, end, interval)
    latest, shown = last - min(offset, count) * length, min(limit, max(count - offset, 0))
    beginnings = [latest - step * length for step in range(shown)]
    if not beginnings:
        return count, []
    low, high = max(start, beginnings[-1]), min(end, beginnings[0] + length - TICK)
    rows = {row.start: row for row in _rows(project_id, low, high, interval, percentiles, operation)}
    return count, [rows.get(beginning) or IntervalRow(beginning) for beginning in beginnings]


def count_intervals(start: datetime, end: datetime, interval: Interval) -> int:
    """Returns the number of intervals that the range touches."""
    length = interval.length
    return (_begin(end, length) - _begin(start, length)) // length + 1


def list_beginnings(start: datetime, end: datetime, interval: Interval, *, limit: int) -> list[datetime]:
    """Returns when the latest intervals of the range begin, at most `limit` of them, the earliest first."""
    length = interval.length
    last, count = _begin(end, length), min(count_intervals(start, end, interval), limit)
    return [last - step * length for step in reversed(range(count))]


def _begin(moment: datetime, length: timedelta) -> datetime:
    """Returns when the interval begins in which the moment lies."""
    return _EPOCH + (moment - _EPOCH) // length * length


def _rows(
    project_id: UUID, start: datetime, end: datetime, interval: Interval, percentiles: bool, operation: str
) -> list[IntervalRow]:
    beginning = BEGINNING[interval]
    keys = {"start": Key(beginning, beginning)}
    figures = (*SUMS, *_PERCENTILES) if percentiles else SUMS
    rollups = plain_rollups(start, end) if interval is Interval.DAY and not percentiles else _ROLLUPS[interval]
    source, params = union(rollups, start, end, keys=keys, figures=figures, operation=operation)
    absent = () if percentiles else _PERCENTILES
    columns = ", ".join([totals(*figures), *(f"emptyArrayFloat32() AS {name}" for name in absent)])
    sql = f"SELECT toDateTime64(f.start, 6, 'UTC') AS start, {columns} FROM {source} AS f GROUP BY f.start"
    values = {**params, "project": project_id}
    return client.query(sql, values, row=IntervalRow, name="usage", database_settings=PLANNED)
