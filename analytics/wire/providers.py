from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypedDict

from core.wire.shown import Shape, shown_as
from integrations.health.circuit import SHARE_TO_OPEN
from integrations.health.reader import ModelHealth, ProviderHealth
from integrations.health.summary import DEGRADED_ERROR_SHARE


class Latency(TypedDict):
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    samples: int
    outcomes: int
    error_rate: float | None
    status: str


class ModelLatency(Latency):
    model: str
    circuit: str


class ProviderLatency(Latency):
    provider: str
    deployment: str
    models: list[ModelLatency]


class ProviderLatencies(TypedDict):
    window_seconds: int
    generated_at: datetime
    providers: list[ProviderLatency]


def provider_latency(row: ProviderHealth) -> ProviderLatency:
    models = [_latency(ModelLatency, item, model=item.model) for item in row.models]
    deployment = row.deployment or row.provider
    return _latency(ProviderLatency, row, provider=row.provider, deployment=deployment, models=models)


def _latency(kind: type[Shape], row: ProviderHealth | ModelHealth, **more: Any) -> Shape:
    return shown_as(kind, row.health, error_rate=row.health.error_share, status=row.status, **more)


class _Counts(TypedDict):
    request_count: int
    error_count: int
    failover_count: int
    error_rate: float | None


class ProviderInterval(_Counts):
    start: datetime
    status: str


class History(_Counts):
    intervals: list[ProviderInterval]


class DeploymentHistory(History):
    deployment: str


class ProviderHistory(History):
    """`deployments` has those of a provider of which the project has one with a name of its own; it is empty for any
    other provider."""

    provider: str
    deployments: list[DeploymentHistory]


class ProviderHistories(TypedDict):
    start_date: datetime
    end_date: datetime
    interval_minutes: int
    providers: list[ProviderHistory]


COUNTS = ("request_count", "error_count", "failover_count")


def history(counts: Sequence[tuple[datetime, Mapping[str, int]]]) -> History:
    """Returns the history of the numbers COUNTS in intervals by their beginnings."""
    intervals: list[ProviderInterval] = []
    for start, found in counts:
        rated = _rated(found)
        intervals.append({"start": start, **rated, "status": _status(rated["error_rate"])})
    total = {name: sum(found.get(name, 0) for _, found in counts) for name in COUNTS}
    return {**_rated(total), "intervals": intervals}


def _rated(counts: Mapping[str, int]) -> _Counts:
    requests, errors, failovers = (counts.get(name, 0) for name in COUNTS)
    # A request that went on to another provider counts as a failure of the one that it left.
    total = requests + failovers
    rate = (errors + failovers) / total if total else None
    return {"request_count": requests, "error_count": errors, "failover_count": failovers, "error_rate": rate}


def _status(rate: float | None) -> str:
    if rate is None:
        return "none"
    if rate >= SHARE_TO_OPEN:
        return "down"
    return "degraded" if rate >= DEGRADED_ERROR_SHARE else "healthy"
