"""Counts the requests and errors of each provider over time, and the failovers between providers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from analytics.clickhouse import client
from analytics.queries.rollup_ranges import MINUTES, PLANNED, Key, clamp, same, totals, union


@dataclass(frozen=True)
class ProviderIntervalRow:
    """The requests that a provider answered or was the last to fail, in the interval that begins at `start`."""

    start: datetime
    provider: str
    requests: int
    errors: int


@dataclass(frozen=True)
class FailoverIntervalRow:
    """The requests that went on to another model or provider in the interval, after `provider` had failed."""

    start: datetime
    provider: str
    failovers: int


@dataclass(frozen=True)
class FailoverRow:
    """The requests that went on from one attempt to another after `error`; the next one served `served` of them."""

    from_provider: str
    from_model: str
    to_provider: str
    to_model: str
    error: str
    requests: int
    served: int
    last_at: datetime


# The pairs of one attempt and the next one at another model or provider. A retry of the same one is no failover.
_PAIRS = """
SELECT
    r.ts AS ts,
    JSONExtract(r.attempts, 'Array(Tuple(provider String, model String, error String))') AS calls,
    arrayJoin(arrayFilter(
        pair -> (pair.1.1, pair.1.2) != (pair.2.1, pair.2.2), arrayZip(arrayPopBack(calls), arrayPopFront(calls))
    )) AS pair
FROM requests AS r
PREWHERE r.project_id = {project:UUID} AND r.ts >= {start:DateTime64(6, 'UTC')} AND r.ts <= {end:DateTime64(6, 'UTC')}
    AND (r.fallback_used OR r.retry_count > 0)
"""


def list_provider_intervals(
    project_id: UUID, start: datetime, end: datetime, minutes: int
) -> list[ProviderIntervalRow]:
    """Returns the intervals of `minutes` (which divide the day) in which a provider had requests."""
    beginning = f"toStartOfInterval({{time}}, INTERVAL {minutes:d} MINUTE, 'UTC')"
    source, params = union(
        [MINUTES],
        start,
        end,
        keys={"start": Key(beginning, beginning), "provider": same("toString(t.provider)")},
        figures=("requests", "errors"),
        where="t.provider != ''",
    )
    sql = (
        "SELECT toDateTime64(f.start, 6, 'UTC') AS start, f.provider AS provider,"
        f" {totals('requests', 'errors')} FROM {source} AS f GROUP BY f.start, f.provider"
    )
    values = {**params, "project": project_id}
    return client.query(sql, values, row=ProviderIntervalRow, name="providers.intervals", database_settings=PLANNED)


def list_failover_intervals(
    project_id: UUID, start: datetime, end: datetime, minutes: int
) -> list[FailoverIntervalRow]:
    """Returns the intervals in which requests went on from a provider that had failed."""
    sql = (
        f"SELECT toDateTime64(toStartOfInterval(p.ts, INTERVAL {minutes:d} MINUTE, 'UTC'), 6, 'UTC') AS start,"
        f" p.pair.1.1 AS provider, count() AS failovers FROM ({_PAIRS}) AS p GROUP BY start, provider"
    )
    params = {"project": project_id, "start": clamp(start), "end": clamp(end)}
    return client.query(sql, params, row=FailoverIntervalRow, name="providers.failed_over", database_settings=PLANNED)


def list_failovers(project_id: UUID, start: datetime, end: datetime) -> Sequence[FailoverRow]:
    """Returns all failovers by falling number of requests, then by names."""
    sql = (
        "SELECT p.pair.1.1 AS from_provider, p.pair.1.2 AS from_model, p.pair.2.1 AS to_provider,"
        " p.pair.2.2 AS to_model, p.pair.1.3 AS error, count() AS requests, countIf(p.pair.2.3 = '') AS served,"
        f" max(p.ts) AS last_at FROM ({_PAIRS}) AS p"
        " GROUP BY from_provider, from_model, to_provider, to_model, error"
        " ORDER BY requests DESC, from_provider, from_model, to_provider, to_model, error"
    )
    params = {"project": project_id, "start": clamp(start), "end": clamp(end)}
    return client.query(sql, params, row=FailoverRow, name="providers.failovers", database_settings=PLANNED)
