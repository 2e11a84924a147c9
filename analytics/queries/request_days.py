"""Counts the matching requests of each day from a rollup.

A count over all requests of a project reads every row of at least two columns. A rollup by day with the filter's
columns gives the count, and the days that a page is on, from a few thousand rows.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from itertools import accumulate
from uuid import UUID

from analytics.clickhouse import client
from analytics.queries.request_filters import RequestFilter, conditions_of
from analytics.queries.rollup_ranges import TICK, USER_DAYS, Key, Rollup, union

KIND_DAYS = Rollup("request_kinds", "day", "Date", timedelta(days=1))
LATENCY_DAYS = Rollup("request_latencies", "day", "Date", timedelta(days=1))
LATENCY_FIELDS = frozenset({"outcome", "min_latency_ms", "max_latency_ms"})
KIND_FIELDS = frozenset(
    {
        "outcome", "status_code", "source", "provider", "model", "requested_model", "error_type", "error_code",
        "prompt_config_id", "prompt_version", "rollout_id", "variant", "operation",
    }
)  # fmt: skip
# A rollup can answer those filters whose columns are in its key.
_ANSWERABLE = ((USER_DAYS, {"user_id"}), (KIND_DAYS, KIND_FIELDS), (LATENCY_DAYS, LATENCY_FIELDS))
_ALWAYS = datetime(1970, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
_DAY = {"day": Key("t.day", "toDate(t.ts, 'UTC')")}


@dataclass(frozen=True)
class Day:
    day: date
    requests: int


@dataclass(frozen=True)
class Stretch:
    """A filter of the days that hold a whole page: `count` requests match it, `offset` of them before the page."""

    filters: RequestFilter
    count: int
    offset: int


def list_days(project_id: UUID, filters: RequestFilter) -> list[Day] | None:
    """The days with matching requests, in order; None if no rollup has them or a plain count is as cheap."""
    given = conditions_of(filters)
    fields = given.conditions.keys() - {"start", "end"}
    rollup = next((rollup for rollup, answerable in _ANSWERABLE if fields and fields <= answerable), None)
    if rollup is None:
        return None
    where = " AND ".join(given.conditions[name] for name in sorted(fields))
    start, end = filters.start or _ALWAYS[0], filters.end or _ALWAYS[1]
    source, times = union(project_id, [rollup], start, end, keys=_DAY, figures=["requests"], where=where)
    sql = f"SELECT f.day AS day, sum(f.requests) AS requests FROM {source} AS f GROUP BY day ORDER BY day"
    return client.query(sql, {**given.values, **times}, row=Day, name="requests.days")


def locate(days: Sequence[Day], filters: RequestFilter, *, limit: int, offset: int) -> Stretch | None:
    """The stretch with a page; `days` are in the list's order. None if the list ends before the page."""
    reached = list(accumulate(day.requests for day in days))
    first = bisect_right(reached, offset)
    if first == len(days):
        return None
    last = min(bisect_left(reached, offset + limit), len(days) - 1)
    before = reached[first] - days[first].requests
    begin, until = sorted((_midnight(days[first].day), _midnight(days[last].day)))
    within = replace(
        filters,
        start=max(filters.start or begin, begin),
        end=min(filters.end or _ALWAYS[1], until + timedelta(days=1) - TICK),
    )
    return Stretch(within, reached[last] - before, offset - before)


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time.min, tzinfo=UTC)
