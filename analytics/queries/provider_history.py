"""Counts the requests and errors of each provider over time, and the failovers between providers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from analytics.clickhouse import client
from analytics.queries.dimensions import DEPLOYMENT
from analytics.queries.rollup_ranges import MINUTES, PLANNED, Key, clamp, same, totals, union


@dataclass(frozen=True)
class ProviderIntervalRow:
    """The requests that a provider answered or was the last to fail, in the interval that begins at `start`."""

    start: datetime
    provider: str
    requests: int
    errors: int


@dataclass(frozen=True)
class DeploymentIntervalRow:
    """The same of one deployment of the provider."""

    start: datetime
    provider: str
    deployment: str
    requests: int
    errors: int


@dataclass(frozen=True)
class FailoverIntervalRow:
    """The requests that went on to another model, deployment or provider in the interval, after `deployment` of
    `provider` had failed."""

    start: datetime
    provider: str
    deployment: str
    failovers: int


@dataclass(frozen=True)
class FailoverRow:
    """The requests that went on from one attempt to another after `error`; the next one served `served` of them."""

    from_provider: str
    from_deployment: str
    from_model: str
    to_provider: str
    to_deployment: str
    to_model: str
    error: str
    requests: int
    served: int
    last_at: datetime


# The pairs of one attempt and the next one at another model, deployment or provider. A retry of the same one is no
# failover. A deployment that the attempt does not name is called like its provider. `retried_attempts` has the attempts
# of the requests of the PREWHERE alone: of `attempts` those of their neighbours would be read as well.
_PAIRS = """
SELECT
    r.ts AS ts,
    JSONExtract(
        r.retried_attempts, 'Array(Tuple(provider String, model String, error String, deployment String))'
    ) AS listed,
    arrayMap(call -> (call.1, call.2, call.3, if(call.4 = '', call.1, call.4)), listed) AS calls,
    arrayJoin(arrayFilter(
        pair -> (pair.1.1, pair.1.2, pair.1.4) != (pair.2.1, pair.2.2, pair.2.4),
        arrayZip(arrayPopBack(calls), arrayPopFront(calls))
    )) AS pair
FROM requests AS r
PREWHERE r.project_id = {project:UUID} AND r.ts >= {start:DateTime64(6, 'UTC')} AND r.ts <= {end:DateTime64(6, 'UTC')}
    AND (r.fallback_used OR r.retry_count > 0)
"""

_FAILOVER_KEYS = "from_provider, from_deployment, from_model, to_provider, to_deployment, to_model, error"


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


def list_deployment_intervals(
    project_id: UUID, start: datetime, end: datetime, minutes: int
) -> list[DeploymentIntervalRow]:
    """Returns the same by deployment, which no rollup has: the rows of the range are read."""
    beginning = f"toStartOfInterval({{time}}, INTERVAL {minutes:d} MINUTE, 'UTC')"
    source, params = union(
        [],
        start,
        end,
        keys={
            "start": Key(beginning, beginning),
            "provider": same("toString(t.provider)"),
            "deployment": same(DEPLOYMENT),
        },
        figures=("requests", "errors"),
        where="t.provider != ''",
    )
    sql = (
        "SELECT toDateTime64(f.start, 6, 'UTC') AS start, f.provider AS provider, f.deployment AS deployment,"
        f" {totals('requests', 'errors')} FROM {source} AS f GROUP BY f.start, f.provider, f.deployment"
    )
    values = {**params, "project": project_id}
    return client.query(sql, values, row=DeploymentIntervalRow, name="deployments.intervals", database_settings=PLANNED)


def list_failover_intervals(
    project_id: UUID, start: datetime, end: datetime, minutes: int
) -> list[FailoverIntervalRow]:
    """Returns the intervals in which requests went on from a provider that had failed."""
    sql = (
        f"SELECT toDateTime64(toStartOfInterval(p.ts, INTERVAL {minutes:d} MINUTE, 'UTC'), 6, 'UTC') AS start,"
        f" p.pair.1.1 AS provider, p.pair.1.4 AS deployment, count() AS failovers FROM ({_PAIRS}) AS p"
        " GROUP BY start, provider, deployment"
    )
    params = {"project": project_id, "start": clamp(start), "end": clamp(end)}
    return client.query(sql, params, row=FailoverIntervalRow, name="providers.failed_over", database_settings=PLANNED)


def list_failovers(project_id: UUID, start: datetime, end: datetime) -> Sequence[FailoverRow]:
    """Returns all failovers by falling number of requests, then by names."""
    sql = (
        "SELECT p.pair.1.1 AS from_provider, p.pair.1.4 AS from_deployment, p.pair.1.2 AS from_model,"
        " p.pair.2.1 AS to_provider, p.pair.2.4 AS to_deployment, p.pair.2.2 AS to_model, p.pair.1.3 AS error,"
        f" count() AS requests, countIf(p.pair.2.3 = '') AS served, max(p.ts) AS last_at FROM ({_PAIRS}) AS p"
        f" GROUP BY {_FAILOVER_KEYS} ORDER BY requests DESC, {_FAILOVER_KEYS}"
    )
    params = {"project": project_id, "start": clamp(start), "end": clamp(end)}
    return client.query(sql, params, row=FailoverRow, name="providers.failovers", database_settings=PLANNED)
