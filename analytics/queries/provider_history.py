"""Counts the requests and errors of each provider over time, and the failovers between providers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from analytics.clickhouse import client
from analytics.queries.dimensions import DEPLOYMENT
from analytics.queries.rollup_ranges import FAILOVER_QUARTERS, HOURS, MINUTES, PLANNED, Key, same, totals, union


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


# The pairs of one attempt and the next one at another model, deployment or provider, with whether the next one served
# the request. A retry of the same one is no failover. A deployment that the attempt does not name is called like its
# provider. `retried_attempts` has the attempts of the requests of the PREWHERE alone: of `attempts` those of their
# neighbours would be read as well.
_CALLS = """arrayMap(
    call -> (call.1, call.2, call.3, if(call.4 = '', call.1, call.4)),
    JSONExtract(t.retried_attempts, 'Array(Tuple(provider String, model String, error String, deployment String))')
)"""
_PAIRS = f"""arrayJoin(arrayMap(
    pair -> (pair.1.1, pair.1.4, pair.1.2, pair.2.1, pair.2.4, pair.2.2, pair.1.3, pair.2.3 = ''),
    arrayFilter(
        pair -> (pair.1.1, pair.1.2, pair.1.4) != (pair.2.1, pair.2.2, pair.2.4),
        arrayZip(arrayPopBack({_CALLS} AS calls), arrayPopFront(calls))
    )
))"""
_PAIR_COLUMNS = (
    "from_provider", "from_deployment", "from_model", "to_provider", "to_deployment", "to_model", "error",
)  # fmt: skip
_PAIR = Key(f"({', '.join(f'toString(t.{name})' for name in _PAIR_COLUMNS)}, t.served)", _PAIRS)
_RETRIED = "(t.fallback_used OR t.retry_count > 0)"

_HOUR = 60


def list_provider_intervals(
    project_id: UUID, start: datetime, end: datetime, minutes: int
) -> list[ProviderIntervalRow]:
    """Returns the intervals of `minutes` (which divide the day) in which a provider had requests."""
    beginning = f"toStartOfInterval({{time}}, INTERVAL {minutes:d} MINUTE, 'UTC')"
    source, params = union(
        [MINUTES if minutes % _HOUR else HOURS],
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
    """Returns the intervals in which requests went on from a provider that had failed; they are whole quarters of an
    hour."""
    beginning = f"toStartOfInterval({{time}}, INTERVAL {minutes:d} MINUTE, 'UTC')"
    source, params = union(
        [FAILOVER_QUARTERS],
        start,
        end,
        keys={"start": Key(beginning, beginning), "pair": _PAIR},
        figures=("requests",),
        where_request=_RETRIED,
    )
    sql = (
        "SELECT toDateTime64(f.start, 6, 'UTC') AS start, f.pair.1 AS provider, f.pair.2 AS deployment,"
        f" sum(f.requests) AS failovers FROM {source} AS f GROUP BY f.start, provider, deployment"
    )
    values = {**params, "project": project_id}
    return client.query(sql, values, row=FailoverIntervalRow, name="providers.failed_over", database_settings=PLANNED)


def list_failovers(project_id: UUID, start: datetime, end: datetime) -> Sequence[FailoverRow]:
    """Returns all failovers by falling number of requests, then by names."""
    source, params = union(
        [FAILOVER_QUARTERS],
        start,
        end,
        keys={"pair": _PAIR},
        figures=("requests", "last_at"),
        where_request=_RETRIED,
    )
    names = ", ".join(_PAIR_COLUMNS)
    columns = ", ".join(f"f.pair.{place} AS {name}" for place, name in enumerate(_PAIR_COLUMNS, 1))
    sql = (
        f"SELECT {columns}, {totals('requests', 'last_at')}, sumIf(f.requests, f.pair.8) AS served"
        f" FROM {source} AS f GROUP BY {names} ORDER BY requests DESC, {names}"
    )
    values = {**params, "project": project_id}
    return client.query(sql, values, row=FailoverRow, name="providers.failovers", database_settings=PLANNED)
