from __future__ import annotations

from typing import Any, TypedDict
from uuid import UUID


class PlaygroundUsage(TypedDict):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    estimated: bool


class PlaygroundFailure(TypedDict):
    type: str
    code: str
    message: str


class PlaygroundEvaluation(TypedDict):
    judge_model: str | None
    request_id: UUID | None
    latency_ms: float | None
    cost_usd: float | None
    reasons: dict[str, str] | None
    error: PlaygroundFailure | None


class PlaygroundResult(TypedDict):
    model: str
    request_id: str
    provider: str | None
    model_used: str | None
    fallback_used: bool
    response: dict[str, Any] | None
    finish_reason: str | None
    usage: PlaygroundUsage | None
    latency_ms: float
    ttft_ms: float | None
    cost_usd: float | None
    prompt_version: int | None
    variant: str | None
    warning: str | None
    scores: dict[str, float] | None
    evaluation: PlaygroundEvaluation | None
    error: PlaygroundFailure | None


class ComparedCost(TypedDict):
    model: str
    cost_usd: float | None
    total_tokens: int
    tokens_per_dollar: float | None
    times_cheapest: float | None


class PlaygroundModel(TypedDict):
    """A model to try. `model` is the name to request; `provider` is null for `auto`. Prices are in US dollars per
    million tokens."""

    model: str
    provider: str | None
    preferred: bool
    input_cost_per_1m: str | None
    output_cost_per_1m: str | None


class PlaygroundComparison(TypedDict):
    results: list[PlaygroundResult]
    fastest: str | None
    cheapest: str | None
    total_cost_usd: float | None
    cost_comparison: list[ComparedCost]
