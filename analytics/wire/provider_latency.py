"""The JSON of the live latency of providers."""

from __future__ import annotations

from datetime import datetime
from typing import TypedDict

from integrations.health.reader import ModelHealth, ProviderHealth
from integrations.health.targets import TargetHealth


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
    models = [_model_latency(item) for item in row.models]
    deployment = row.deployment or row.provider
    return {"provider": row.provider, "deployment": deployment, **_latency(row.health, row.status), "models": models}


def _model_latency(item: ModelHealth) -> ModelLatency:
    return {"model": item.model, **_latency(item.health, item.status), "circuit": item.health.circuit}


def _latency(health: TargetHealth, status: str) -> Latency:
    return {
        "p50_ms": health.p50_ms,
        "p95_ms": health.p95_ms,
        "p99_ms": health.p99_ms,
        "samples": health.samples,
        "outcomes": health.outcomes,
        "error_rate": health.error_share,
        "status": status,
    }
