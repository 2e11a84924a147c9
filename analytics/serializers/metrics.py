"""Figures about a project on the wire."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Protocol

from analytics.queries.failures import Failure
from analytics.queries.model_costs import ModelCost
from analytics.queries.models import ModelRow
from analytics.queries.overview import ModelTotals, Overview
from analytics.queries.usage import Usage
from analytics.queries.users import UserRow
from integrations.health.reader import ModelHealth, ProviderHealth
from integrations.health.targets import TargetHealth


class _Sums(Protocol):
    """What users, models and intervals have in common."""

    @property
    def requests(self) -> int: ...
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


def overview(totals: Overview) -> dict[str, Any]:
    return {
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


def user(row: UserRow) -> dict[str, Any]:
    return {
        "user_id": row.user_id,
        **_sums(row),
        "session_count": row.sessions,
        "models_used": row.models,
        "first_seen": row.first_at,
        "last_seen": row.last_at,
    }


def model(row: ModelRow) -> dict[str, Any]:
    return {
        "model": row.model,
        "provider": row.provider,
        **_sums(row),
        **_percentiles("latency", row.requests, row.latency_q),
        **_percentiles("ttft", row.streamed, row.ttft_q),
    }


def usage(row: Usage) -> dict[str, Any]:
    return {"start": row.start, **_sums(row), **_percentiles("latency", row.requests, row.latency_q)}


def day_cost(row: Usage) -> dict[str, Any]:
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


def model_costs(rows: Sequence[ModelCost]) -> list[dict[str, Any]]:
    """With the percentage that each has of all spend: they sum to 100, or are all 0 where nothing was spent."""
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


def failures(rows: Sequence[Failure]) -> list[dict[str, Any]]:
    """With the percentage that each kind is of all errors."""
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


def provider_latency(row: ProviderHealth) -> dict[str, Any]:
    models = [_model_latency(item) for item in row.models]
    return {"provider": row.provider, **_latency(row.health), "status": row.status, "models": models}


def _sums(row: _Sums) -> dict[str, Any]:
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
        "average_latency_ms": row.latency_sum_ms / row.requests if row.requests else 0.0,
    }


def _percentiles(name: str, samples: int, values: Sequence[float]) -> dict[str, float | None]:
    """Null where there is nothing to measure."""
    found: Sequence[float | None] = values if samples else (None, None, None)
    return {f"p{level}_{name}_ms": value for level, value in zip((50, 95, 99), found, strict=True)}


def _model_latency(item: ModelHealth) -> dict[str, Any]:
    return {"model": item.model, **_latency(item.health), "status": item.status, "circuit": item.health.circuit}


def _latency(health: TargetHealth) -> dict[str, Any]:
    return {
        "p50_ms": health.p50_ms,
        "p95_ms": health.p95_ms,
        "p99_ms": health.p99_ms,
        "samples": health.samples,
        "error_rate": health.error_share,
    }


def _model_totals(item: ModelTotals) -> dict[str, Any]:
    return {
        "model": item.model,
        "request_count": item.requests,
        "total_tokens": item.tokens,
        "total_cost_usd": float(item.cost_usd),
    }
