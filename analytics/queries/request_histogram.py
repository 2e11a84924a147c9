"""Counts the requests of each minute, hour or day that match a filter, by what became of them.

A rollup answers where it has the columns of the filter. Otherwise the requests of the range are counted themselves; of
each only the time, the outcome and the columns of the filter are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from analytics.clickhouse import client
from analytics.queries.request_days import KIND_DAYS, KIND_FIELDS
from analytics.queries.request_filters import RequestFilter, conditions_of
from analytics.queries.rollup_ranges import (
    DAYS,
    HOURS,
    MINUTES,
    PLANNED,
    USER_DAYS,
    USER_HOURS,
    Key,
    Rollup,
    same,
    union,
)
from analytics.queries.usage import BEGINNING, Interval, count_intervals, list_beginnings

_OF_MODELS = frozenset({"provider", "model", "operation"})
_OF_USERS = frozenset({"user_id", "operation"})
_OF_ARMS = _OF_MODELS | {"prompt_config_id", "prompt_version", "rollout_id", "variant"}

# The rollups by interval that know a filter of these fields, the cheapest first.
_ROLLUPS: Mapping[Interval, Sequence[tuple[frozenset[str], Sequence[Rollup]]]] = {
    Interval.MINUTE: ((_OF_ARMS, (MINUTES,)),),
    Interval.HOUR: ((_OF_MODELS, (HOURS,)), (_OF_USERS, (USER_HOURS,))),
    Interval.DAY: (
        (_OF_MODELS, (DAYS, HOURS)),
        (_OF_USERS, (USER_DAYS, USER_HOURS)),
        (KIND_FIELDS, (KIND_DAYS,)),
    ),
}
_FIGURES = ("requests", "errors", "cancelled")


@dataclass(frozen=True)
class HistogramRow:
    """The requests that match and arrived in the interval that begins at `start`."""

    start: datetime
    requests: int = 0
    errors: int = 0
    cancelled: int = 0


def list_histogram(
    project_id: UUID, filters: RequestFilter, start: datetime, end: datetime, interval: Interval
) -> Sequence[HistogramRow]:
    """Returns each interval of the range from `start` to `end`, the oldest first; those without requests are 0."""
    given = conditions_of(filters)
    fields = given.conditions.keys() - {"start", "end"}
    where = " AND ".join(["1", *(given.conditions[name] for name in sorted(fields))])
    rollups = next((rollups for known, rollups in _ROLLUPS[interval] if fields <= known), ())
    by_kind = KIND_DAYS in rollups
    keys = {"start": Key(BEGINNING[interval], BEGINNING[interval])}
    if by_kind:
        keys["outcome_value"] = same("toString(t.outcome)")
    source, times = union(rollups, start, end, keys=keys, figures=["requests"] if by_kind else _FIGURES, where=where)
    sql = f"SELECT toDateTime64(f.start, 6, 'UTC') AS start, {_sums(by_kind)} FROM {source} AS f GROUP BY f.start"
    params: dict[str, Any] = {**given.values, **times, "project": project_id}
    rows = client.query(sql, params, row=HistogramRow, name="requests.histogram", database_settings=PLANNED)
    found = {row.start: row for row in rows}
    beginnings = list_beginnings(start, end, interval, limit=count_intervals(start, end, interval))
    return [found.get(beginning) or HistogramRow(beginning) for beginning in beginnings]


def _sums(by_kind: bool) -> str:
    if not by_kind:
        return ", ".join(f"sum(f.{name}) AS {name}" for name in _FIGURES)
    return (
        "sum(f.requests) AS requests,"
        " sumIf(f.requests, f.outcome_value IN ('error', 'interrupted')) AS errors,"
        " sumIf(f.requests, f.outcome_value = 'cancelled') AS cancelled"
    )
