from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from uuid import UUID

from analytics.queries.measures import Scope, knows, measure_intervals
from analytics.queries.request_days import KIND_DAYS, KIND_FIELDS
from analytics.queries.request_filters import RequestFilter, conditions_of
from analytics.queries.rollup_ranges import same, union
from analytics.queries.summed import BEGINS, summed
from analytics.queries.usage import BEGINNING, Interval, count_intervals, list_beginnings

_FIGURES = ("request_count", "error_count", "cancelled_count")


@dataclass(frozen=True)
class HistogramEntry:
    """The requests that match and arrived in the interval that begins at `start`."""

    start: datetime
    request_count: int
    ok_count: int
    error_count: int
    cancelled_count: int


@dataclass(frozen=True)
class RequestHistogram:
    """The number of requests in the range, and in each interval of it, the oldest first."""

    start_date: datetime
    end_date: datetime
    interval: Interval
    request_count: int
    error_count: int
    results: list[HistogramEntry]


@dataclass(frozen=True)
class _Counted:
    start: datetime
    values: Sequence[int]


def count_by_interval(
    project_id: UUID, filters: RequestFilter, start: datetime, end: datetime, interval: Interval
) -> RequestHistogram:
    """Intervals without requests are 0."""
    scope = Scope(project_id, start, end, filters)
    fields = conditions_of(filters).conditions.keys() - {"start", "end"}
    counted: dict[datetime, Sequence[int]]
    if interval is Interval.DAY and fields <= KIND_FIELDS and not knows(fields, interval):
        counted = {row.start: row.values for row in _of_kinds(scope)}
    else:
        counted = {row.start: [*map(int, row.values)] for row in measure_intervals(scope, _FIGURES, interval)}
    beginnings = list_beginnings(start, end, interval, limit=count_intervals(start, end, interval))
    results = [_entry(beginning, *counted.get(beginning, (0, 0, 0))) for beginning in beginnings]
    requests, errors = sum(row.request_count for row in results), sum(row.error_count for row in results)
    return RequestHistogram(start, end, interval, requests, errors, results)


def _entry(start: datetime, requests: int, errors: int, cancelled: int) -> HistogramEntry:
    return HistogramEntry(start, requests, requests - errors - cancelled, errors, cancelled)


def _of_kinds(scope: Scope) -> Sequence[_Counted]:
    given = conditions_of(scope.filters)
    where = " AND ".join(["1", *(text for name, text in given.conditions.items() if name not in ("start", "end"))])
    keys = {"start": same(BEGINNING[Interval.DAY]), "outcome_value": same("toString(t.outcome)")}
    return summed(
        _Counted,
        partial(union, scope.project_id, [KIND_DAYS], scope.start, scope.end, keys=keys, where=where),
        by=["start"],
        inner={
            "errors": "sumIf(f.requests, f.outcome_value IN ('error', 'interrupted'))",
            "cancelled": "sumIf(f.requests, f.outcome_value = 'cancelled')",
        },
        also=["requests"],
        outer={**BEGINS, "values": "(requests, errors, cancelled)"},
        values=given.values,
        name="requests.histogram",
    )
