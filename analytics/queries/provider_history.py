from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from analytics.clickhouse import client
from analytics.queries.dimensions import DEPLOYMENT
from analytics.queries.rollup_ranges import FAILOVER_QUARTERS, HOURS, MINUTES, PLANNED, Key, same
from analytics.queries.summed import BEGINS, Scope, summed


@dataclass(frozen=True)
class IntervalCounts:
    """The outcomes at a provider, or one of its deployments if named, in the interval that begins at `start`: requests
    that it answered or was the last to fail, and those that went on after it had failed."""

    start: datetime
    provider: str
    deployment: str
    request_count: int
    error_count: int
    failover_count: int


@dataclass(frozen=True)
class Failover:
    """The requests that went on from one attempt to another after `error`; the next one answered `served_count`."""

    from_provider: str
    from_deployment: str
    from_model: str
    to_provider: str
    to_deployment: str
    to_model: str
    error: str
    request_count: int
    served_count: int
    last_seen: datetime


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

_PROVIDER, _SERVED = {"provider": same("toString(t.provider)")}, "t.provider != ''"
_HOUR = 60


def list_provider_intervals(scope: Scope, minutes: int) -> list[IntervalCounts]:
    """The intervals of `minutes` (which divide the day) in which a provider had requests."""
    by = {"start": _beginning(minutes), **_PROVIDER}
    source = scope.of(MINUTES if minutes % _HOUR else HOURS, keys=by, where=_SERVED)
    outer = {**BEGINS, "deployment": "''", "failover_count": "0"}
    return summed(IntervalCounts, source, by=by, outer=outer, name="providers.intervals")


def list_deployment_intervals(scope: Scope, minutes: int) -> list[IntervalCounts]:
    """By deployment, which no rollup has: the rows of the range are read."""
    by = {"start": _beginning(minutes), **_PROVIDER, "deployment": same(DEPLOYMENT)}
    source, outer = scope.of(keys=by, where=_SERVED), {**BEGINS, "failover_count": "0"}
    return summed(IntervalCounts, source, by=by, outer=outer, name="deployments.intervals")


def _beginning(minutes: int) -> Key:
    return same(f"toStartOfInterval({{time}}, INTERVAL {minutes:d} MINUTE, 'UTC')")


def list_failover_intervals(scope: Scope, minutes: int) -> list[IntervalCounts]:
    """Failovers from each provider, by whole quarters of an hour."""
    keys = {"start": _beginning(minutes), "pair": _PAIR}
    return summed(
        IntervalCounts,
        scope.of(FAILOVER_QUARTERS, keys=keys, where_request=_RETRIED),
        by=["start", "pair"],
        also=["requests"],
        outer={
            **BEGINS,
            "provider": "pair.1",
            "deployment": "pair.2",
            "request_count": "0",
            "error_count": "0",
            "failover_count": "requests",
        },
        name="providers.failed_over",
    )


def list_failovers(scope: Scope) -> Sequence[Failover]:
    failovers = scope.of(FAILOVER_QUARTERS, keys={"pair": _PAIR}, where_request=_RETRIED)
    source, params = failovers(figures=("requests", "last_at"))
    names = ", ".join(_PAIR_COLUMNS)
    columns = ", ".join(f"f.pair.{place} AS {name}" for place, name in enumerate(_PAIR_COLUMNS, 1))
    sql = (
        f"SELECT {columns}, sum(f.requests) AS request_count, sumIf(f.requests, f.pair.8) AS served_count,"
        f" max(f.last_at) AS last_seen FROM {source} AS f GROUP BY {names} ORDER BY request_count DESC, {names}"
    )
    return client.query(sql, params, row=Failover, name="providers.failovers", database_settings=PLANNED)
