"""What the analytics endpoints answer, for the OpenAPI document: the fields of `analytics.serializers`, one by one.

Texts that people and models wrote are null for who may not read them.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Any, Literal, TypedDict
from uuid import UUID


class RequestError(TypedDict):
    type: str
    code: str
    message: str | None


class RequestEntry(TypedDict):
    request_id: UUID
    created_at: datetime
    session_id: str
    user_id: str
    source: str
    outcome: str
    status_code: int
    provider: str
    model: str
    requested_model: str
    error: RequestError | None
    finish_reason: str
    stream: bool
    cache: str
    retry_count: int
    fallback_used: bool
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    tokens_estimated: bool
    cost_usd: float | None
    cost_source: str | None
    latency_ms: int
    ttft_ms: int | None
    prompt_config_id: UUID | None
    prompt_version: int | None
    rollout_id: UUID | None
    variant: str | None
    contract_violation: bool
    attempts: list[dict[str, Any]]
    prompt_preview: str | None
    completion_preview: str | None


class ScoreEntry(TypedDict):
    id: UUID
    project_id: UUID
    score_id: str
    request_id: str
    score_name: str
    score_value: float
    score_type: Literal["number", "boolean", "category"]
    score_label: str
    reason: str | None
    evaluator_type: str
    created_by: str
    created_at: datetime
    updated_at: datetime
    revision: int


class RequestDetail(RequestEntry):
    attributes: dict[str, Any] | None
    content_logged: bool
    request: Any
    response: Any
    scores: list[ScoreEntry]


class FeedbackEntry(TypedDict):
    id: UUID
    project_id: UUID
    session_id: str
    score: int | None
    text: str | None
    created_by: str
    created_at: datetime


class SessionEntry(TypedDict):
    session_id: str
    user_id: str
    started_at: datetime
    ended_at: datetime
    request_count: int
    total_tokens: int
    total_cost_usd: float
    error_count: int
    unpriced_request_count: int
    feedback_score: float | None


class SessionTokens(TypedDict):
    prompt_tokens: int
    completion_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    total_tokens: int


class SessionDetail(SessionEntry):
    tokens: SessionTokens
    cancelled_count: int
    duration_seconds: float
    average_latency_ms: float
    models_used: list[str]
    providers_used: list[str]
    users: list[str]
    feedback: list[FeedbackEntry]


class SearchResult(RequestEntry):
    prompt_highlights: list[tuple[int, int]]
    completion_highlights: list[tuple[int, int]]


class SearchResults(TypedDict):
    count: int
    has_more: bool
    searched_since: datetime | None
    results: list[SearchResult]


class ScoreBatchResult(TypedDict):
    count: int
    created: int
    updated: int
    scores: list[ScoreEntry]


class Span(TypedDict):
    trace_id: str
    span_id: str
    parent_span_id: str
    span_name: str
    span_kind: str
    service_name: str
    timestamp: str
    duration_ns: int
    status_code: str
    status_message: str | None
    attributes: dict[str, str] | None


class LogRecord(TypedDict):
    timestamp: str
    trace_id: str
    span_id: str
    severity_text: str
    service_name: str
    body: str | None
    attributes: dict[str, str] | None


class SessionTelemetry(TypedDict):
    spans: list[Span]
    logs: list[LogRecord]


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


class ModelFigures(Sums, LatencyPercentiles):
    model: str
    provider: str
    p50_ttft_ms: float | None
    p95_ttft_ms: float | None
    p99_ttft_ms: float | None


class IntervalFigures(Sums, LatencyPercentiles):
    start: datetime


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


class Latency(TypedDict):
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    samples: int
    error_rate: float | None
    status: str


class ModelLatency(Latency):
    model: str
    circuit: str


class ProviderLatency(Latency):
    provider: str
    models: list[ModelLatency]


class ProviderLatencies(TypedDict):
    window_seconds: int
    generated_at: datetime
    providers: list[ProviderLatency]


class LabelCount(TypedDict):
    label: str
    count: int


class ScoreFigures(TypedDict):
    score_name: str
    score_type: str
    count: int
    mean: float | None
    min: float | None
    max: float | None
    distribution: list[LabelCount] | None


class FeedbackDay(TypedDict):
    date: date
    count: int
    text_count: int
    session_count: int
    mean_score: float | None
    scores: dict[str, int]
