"""Figures about a project on the wire."""

from __future__ import annotations

from typing import Any

from analytics.queries.overview import ModelTotals, Overview
from integrations.health.reader import ModelHealth, ProviderHealth
from integrations.health.targets import TargetHealth


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
