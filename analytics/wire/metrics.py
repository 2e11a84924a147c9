"""The JSON of figures about a project."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Protocol, TypedDict
from uuid import UUID

from analytics.queries.failures import Failure
from analytics.queries.models import ModelCostRow, ModelRow
from analytics.queries.overview import ModelTotalsRow, OverviewRow
from analytics.queries.prompt_figures import PromptFiguresRow
from analytics.queries.range_totals import OperationRow, TotalsRow
from analytics.queries.usage import IntervalRow
from analytics.queries.users import UserRow


class Sums(TypedDict):
    request_count: int
    error_count: int
    error_rate: float
    cancelled_count: int
    unpriced_request_count: int
    prompt_tokens: int
    completion_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    total_tokens: int
    total_cost_usd: float
    average_latency_ms: float


class UserFigures(Sums):
    user_id: str
    session_count: int
    models_used: list[str]
    first_seen: datetime
    last_seen: datetime


class LatencyPercentiles(TypedDict):
    p50_latency_ms: float | None
    p95_latency_ms: float | None
    p99_latency_ms: float | None


class TtftPercentiles(TypedDict):
    p50_ttft_ms: float | None
    p95_ttft_ms: float | None
    p99_ttft_ms: float | None


class ModelFigures(Sums, LatencyPercentiles, TtftPercentiles):
    model: str
    provider: str


class OperationFigures(Sums, LatencyPercentiles, TtftPercentiles):
    operation: str


class PromptFigures(Sums):
    prompt_config_id: UUID
    prompt_version: int | None


class IntervalFigures(Sums, LatencyPercentiles, TtftPercentiles):
    start: datetime


class Totals(Sums, LatencyPercentiles, TtftPercentiles):
    start_date: datetime
    end_date: datetime


class DayCost(TypedDict):
    date: date
    request_count: int
    input_tokens: int
    output_tokens: int
    total_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    total_cost_usd: float
    unpriced_request_count: int


class ModelCost(TypedDict):
    model: str
    providers: list[str]
    request_count: int
    input_tokens: int
    output_tokens: int
    total_tokens: int
    total_cost_usd: float
    percentage: float
    unpriced_request_count: int


class ErrorKind(TypedDict):
    provider: str
    type: str
    code: str
    status_codes: list[int]
    models: list[str]
    error_count: int
    percentage: float
    last_seen: datetime


class ModelTotals(TypedDict):
    model: str
    request_count: int
    total_tokens: int
    total_cost_usd: float


class Overview(TypedDict):
    start_date: datetime
    end_date: datetime
    total_requests: int
    total_sessions: int
    total_users: int
    total_tokens: int
    total_cost_usd: float
    error_count: int
    cancelled_count: int
    unpriced_request_count: int
    error_rate: float
    average_latency_ms: float
    top_models: list[ModelTotals]


class _SumsRow(Protocol):
    """The sums that rows of users, models and intervals have in common."""

    @property
    def requests(self) -> int: ...
    @property
    def batched(self) -> int: ...
    @property
    def errors(self) -> int: ...
    @property
    def cancelled(self) -> int: ...
    @property
    def unpriced(self) -> int: ...
    @property
    def prompt_tokens(self) -> int: ...
    @property
    def completion_tokens(self) -> int: ...
    @property
    def cache_read_tokens(self) -> int: ...
    @property
    def cache_write_tokens(self) -> int: ...
    @property
    def cost_usd(self) -> Decimal: ...
    @property
    def latency_sum_ms(self) -> int: ...


def overview(totals: OverviewRow, start: datetime, end: datetime) -> Overview:
    return {
        "start_date": start,
        "end_date": end,
        "total_requests": totals.requests,
        "total_sessions": totals.sessions,
        "total_users": totals.users,
        "total_tokens": totals.tokens,
        "total_cost_usd": float(totals.cost_usd),
        "error_count": totals.errors,
        "cancelled_count": totals.cancelled,
        "unpriced_request_count": totals.unpriced,
        "error_rate": totals.error_rate,
        "average_latency_ms": totals.average_latency_ms,
        "top_models": [_model_totals(item) for item in totals.top_models],
    }


def user(row: UserRow) -> UserFigures:
    return {
        "user_id": row.user_id,
        **sums(row),
        "session_count": row.sessions,
        "models_used": row.models,
        "first_seen": row.first_at,
        "last_seen": row.last_at,
    }


def model(row: ModelRow) -> ModelFigures:
    return {
        "model": row.model,
        "provider": row.provider,
        **sums(row),
        **_latency_percentiles(row),
        **_ttft_percentiles(row),
    }


def operation(row: OperationRow) -> OperationFigures:
    return {"operation": row.operation, **sums(row), **_latency_percentiles(row), **_ttft_percentiles(row)}


def prompt(row: PromptFiguresRow) -> PromptFigures:
    return {"prompt_config_id": row.prompt_config_id, "prompt_version": row.prompt_version or None, **sums(row)}


def usage(row: IntervalRow) -> IntervalFigures:
    p50, p95, p99 = (None if math.isnan(value) else value for value in row.ttft_q or [math.nan] * 3)
    return {
        "start": row.start,
        **sums(row),
        **_latency_percentiles(row),
        "p50_ttft_ms": p50,
        "p95_ttft_ms": p95,
        "p99_ttft_ms": p99,
    }


def totals(row: TotalsRow, start: datetime, end: datetime) -> Totals:
    return {
        "start_date": start,
        "end_date": end,
        **sums(row),
        **_latency_percentiles(row),
        **_ttft_percentiles(row),
    }


def day_cost(row: IntervalRow) -> DayCost:
    return {
        "date": row.start.date(),
        "request_count": row.requests,
        "input_tokens": row.prompt_tokens,
        "output_tokens": row.completion_tokens,
        "total_tokens": row.prompt_tokens + row.completion_tokens,
        "cache_read_tokens": row.cache_read_tokens,
        "cache_write_tokens": row.cache_write_tokens,
        "total_cost_usd": float(row.cost_usd),
        "unpriced_request_count": row.unpriced,
    }


def model_costs(rows: Sequence[ModelCostRow]) -> list[ModelCost]:
    """Returns the models with their shares of all spend, in percent: they sum to 100, or are all 0 when nothing was
    spent."""
    total = sum((row.cost_usd for row in rows), Decimal(0))
    return [
        {
            "model": row.model,
            "providers": row.providers,
            "request_count": row.requests,
            "input_tokens": row.prompt_tokens,
            "output_tokens": row.completion_tokens,
            "total_tokens": row.prompt_tokens + row.completion_tokens,
            "total_cost_usd": float(row.cost_usd),
            "percentage": float(100 * row.cost_usd / total) if total else 0.0,
            "unpriced_request_count": row.unpriced,
        }
        for row in rows
    ]


def failures(rows: Sequence[Failure]) -> list[ErrorKind]:
    """Returns the errors with their shares of all errors, in percent."""
    total = sum(row.requests for row in rows)
    return [
        {
            "provider": row.provider,
            "type": row.error_type,
            "code": row.error_code,
            "status_codes": row.status_codes,
            "models": row.models,
            "error_count": row.requests,
            "percentage": 100 * row.requests / total,
            "last_seen": row.last_at,
        }
        for row in rows
    ]


def sums(row: _SumsRow) -> Sums:
    timed = row.requests - row.batched
    return {
        "request_count": row.requests,
        "error_count": row.errors,
        "error_rate": row.errors / row.requests if row.requests else 0.0,
        "cancelled_count": row.cancelled,
        "unpriced_request_count": row.unpriced,
        "prompt_tokens": row.prompt_tokens,
        "completion_tokens": row.completion_tokens,
        "cache_read_tokens": row.cache_read_tokens,
        "cache_write_tokens": row.cache_write_tokens,
        "total_tokens": row.prompt_tokens + row.completion_tokens,
        "total_cost_usd": float(row.cost_usd),
        "average_latency_ms": row.latency_sum_ms / timed if timed else 0.0,
    }


def _latency_percentiles(row: IntervalRow | TotalsRow) -> LatencyPercentiles:
    p50, p95, p99 = _percentiles(row.requests - row.batched, row.latency_q)
    return {"p50_latency_ms": p50, "p95_latency_ms": p95, "p99_latency_ms": p99}


def _ttft_percentiles(row: TotalsRow) -> TtftPercentiles:
    p50, p95, p99 = _percentiles(row.streamed, row.ttft_q)
    return {"p50_ttft_ms": p50, "p95_ttft_ms": p95, "p99_ttft_ms": p99}


def _percentiles(samples: int, values: Sequence[float]) -> Sequence[float | None]:
    """Returns the 50th, 95th and 99th percentile, each None when nothing was measured."""
    return values if samples else (None, None, None)


def _model_totals(item: ModelTotalsRow) -> ModelTotals:
    return {
        "model": item.model,
        "request_count": item.requests,
        "total_tokens": item.tokens,
        "total_cost_usd": float(item.cost_usd),
    }
