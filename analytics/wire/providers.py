"""The JSON of groups of errors, of the history of providers and of failovers between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TypedDict
from uuid import UUID

from analytics.queries.error_groups import ErrorGroupRow
from analytics.queries.provider_history import FailoverRow
from integrations.health.circuit import SHARE_TO_OPEN
from integrations.health.summary import DEGRADED_ERROR_SHARE


class ProviderInterval(TypedDict):
    start: datetime
    request_count: int
    error_count: int
    failover_count: int
    error_rate: float | None
    status: str


class History(TypedDict):
    request_count: int
    error_count: int
    failover_count: int
    error_rate: float | None
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


class Failover(TypedDict):
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


def provider_history(
    provider: str, intervals: list[ProviderInterval], deployments: list[DeploymentHistory]
) -> ProviderHistory:
    return {"provider": provider, **_history(intervals), "deployments": deployments}


def deployment_history(deployment: str, intervals: list[ProviderInterval]) -> DeploymentHistory:
    return {"deployment": deployment, **_history(intervals)}


def _history(intervals: list[ProviderInterval]) -> History:
    requests, errors, failovers = (
        sum(one["request_count"] for one in intervals),
        sum(one["error_count"] for one in intervals),
        sum(one["failover_count"] for one in intervals),
    )
    return {
        "request_count": requests,
        "error_count": errors,
        "failover_count": failovers,
        "error_rate": _error_rate(requests, errors, failovers),
        "intervals": intervals,
    }


def provider_interval(start: datetime, requests: int, errors: int, failovers: int) -> ProviderInterval:
    rate = _error_rate(requests, errors, failovers)
    return {
        "start": start,
        "request_count": requests,
        "error_count": errors,
        "failover_count": failovers,
        "error_rate": rate,
        "status": _status(rate),
    }


def failover(row: FailoverRow) -> Failover:
    return {
        "from_provider": row.from_provider,
        "from_deployment": row.from_deployment,
        "from_model": row.from_model,
        "to_provider": row.to_provider,
        "to_deployment": row.to_deployment,
        "to_model": row.to_model,
        "error": row.error,
        "request_count": row.requests,
        "served_count": row.served,
        "last_seen": row.last_at,
    }


def _error_rate(requests: int, errors: int, failovers: int) -> float | None:
    """Returns the share of failures of a provider: a request that went on from it counts as a failure of it, too."""
    total = requests + failovers
    return (errors + failovers) / total if total else None


def _status(rate: float | None) -> str:
    """Returns the words of live health for a share of failures, and `none` without any request."""
    if rate is None:
        return "none"
    if rate >= SHARE_TO_OPEN:
        return "down"
    return "degraded" if rate >= DEGRADED_ERROR_SHARE else "healthy"


class ErrorGroup(TypedDict):
    provider: str
    model: str
    type: str
    code: str
    status_codes: list[int]
    error_count: int
    percentage: float
    first_seen: datetime
    last_seen: datetime
    sample_request_id: UUID | None
    counts: list[int]


def error_group(
    row: ErrorGroupRow, *, sample: UUID | None, starts: Sequence[datetime], counts: Mapping[datetime, int]
) -> ErrorGroup:
    """Returns the group with the number of its errors in each interval; the percentage is of all errors."""
    return {
        "provider": row.provider,
        "model": row.model,
        "type": row.error_type,
        "code": row.error_code,
        "status_codes": row.status_codes,
        "error_count": row.requests,
        "percentage": 100 * row.requests / row.errors,
        "first_seen": row.first_at,
        "last_seen": row.last_at,
        "sample_request_id": sample,
        "counts": [counts.get(start, 0) for start in starts],
    }
