"""Wire shapes of the analytics endpoints.

Measured money is a JSON number: a double prints the ten places of any sum below 100,000 dollars exactly.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec

from analytics.queries.overview import ModelTotals, Overview
from analytics.queries.requests import RequestRow
from analytics.queries.sessions import SessionRow
from integrations.health.reader import ModelHealth, ProviderHealth
from integrations.health.targets import TargetHealth


def session_entry(row: SessionRow) -> dict[str, Any]:
    return {
        "session_id": row.session_id,
        "user_id": row.user_id,
        "started_at": row.started_at,
        "ended_at": row.ended_at,
        "request_count": row.request_count,
        "total_tokens": row.prompt_tokens + row.completion_tokens,
        "total_cost_usd": float(row.cost_usd),
        "error_count": row.error_count,
        "unpriced_request_count": row.unpriced_count,
        "feedback_score": None,
    }


def session_detail(row: SessionRow) -> dict[str, Any]:
    return {
        **session_entry(row),
        "tokens": {
            "prompt_tokens": row.prompt_tokens,
            "completion_tokens": row.completion_tokens,
            "cache_read_tokens": row.cache_read_tokens,
            "cache_write_tokens": row.cache_write_tokens,
            "total_tokens": row.prompt_tokens + row.completion_tokens,
        },
        "average_latency_ms": row.latency_sum_ms / row.request_count,
        "models_used": row.models,
        "feedback": [],
    }


def request_entry(row: RequestRow) -> dict[str, Any]:
    return {
        "request_id": str(row.request_id),
        "created_at": row.ts,
        "session_id": row.session_id,
        "user_id": row.user_id,
        "source": row.source,
        "outcome": row.outcome,
        "status_code": row.status_code,
        "provider": row.provider,
        "model": row.model,
        "requested_model": row.requested_model,
        "error": _error(row),
        "finish_reason": row.finish_reason,
        "stream": row.is_stream,
        "cache": row.cache_status,
        "retry_count": row.retry_count,
        "fallback_used": row.fallback_used,
        "prompt_tokens": row.prompt_tokens,
        "completion_tokens": row.completion_tokens,
        "total_tokens": row.prompt_tokens + row.completion_tokens,
        "cache_read_tokens": row.cache_read_tokens,
        "cache_write_tokens": row.cache_write_tokens,
        "reasoning_tokens": row.reasoning_tokens,
        "tokens_estimated": row.tokens_estimated,
        "cost_usd": float(row.cost_usd) if row.cost_known else None,
        "latency_ms": row.latency_ms,
        "ttft_ms": row.ttft_ms or None,
        "prompt_config_id": _id(row.prompt_config_id),
        "prompt_version": row.prompt_version or None,
        "rollout_id": _id(row.rollout_id),
        "variant": row.variant or None,
        "contract_violation": row.contract_violation,
        "attempts": msgspec.json.decode(row.attempts) if row.attempts else [],
        "prompt_preview": row.prompt_preview,
        "completion_preview": row.completion_preview,
    }


def overview(totals: Overview) -> dict[str, Any]:
    return {
        "total_requests": totals.requests,
        "total_sessions": totals.sessions,
        "total_users": totals.users,
        "total_tokens": totals.tokens,
        "total_cost_usd": float(totals.cost_usd),
        "unpriced_request_count": totals.unpriced,
        "error_rate": totals.error_rate,
        "average_latency_ms": totals.average_latency_ms,
        "top_models": [_model(item) for item in totals.top_models],
    }


def provider_latency(row: ProviderHealth) -> dict[str, Any]:
    models = [_model_latency(item) for item in row.models]
    return {"provider": row.provider, **_latency(row.health), "status": row.status, "models": models}


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


def _model(item: ModelTotals) -> dict[str, Any]:
    return {
        "model": item.model,
        "request_count": item.requests,
        "total_tokens": item.tokens,
        "total_cost_usd": float(item.cost_usd),
    }


def _error(row: RequestRow) -> dict[str, str] | None:
    if not row.error_type and not row.error_code:
        return None
    return {"type": row.error_type, "code": row.error_code, "message": row.error_message}


def _id(value: UUID) -> str | None:
    return str(value) if value.int else None
