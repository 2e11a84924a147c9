"""Shapes of the answers about experiments, for the API and the pages."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, TypedDict
from uuid import UUID

Label = Literal["A", "B", "C", "D"]
State = Literal["pending", "running", "completed", "cancelled", "failed"]


class ExperimentCandidate(TypedDict):
    label: Label
    title: str
    prompt_config_id: UUID | None
    prompt_name: str | None
    version_id: UUID | None
    prompt_version: int | None
    model: str | None
    temperature: float | None
    max_tokens: int | None


class ExperimentEntry(TypedDict):
    id: UUID
    name: str
    state: State
    failure: str | None
    created_by: str
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    candidates: list[ExperimentCandidate]
    filter: dict[str, Any]
    order: Literal["newest", "random"]
    judge: bool
    item_count: int
    answer_count: int
    done_count: int


class ExperimentFigures(TypedDict):
    label: Label
    answered: int
    failed: int
    pending: int
    total_cost_usd: float
    mean_cost_usd: float | None
    mean_latency_ms: float | None
    mean_tokens: float | None
    mean_score: float | None
    wins: int
    ties: int
    compared: int
    win_rate: float | None
    win_rate_low: float | None
    win_rate_high: float | None


class ExperimentDetail(ExperimentEntry):
    summary: list[ExperimentFigures]


class ExperimentAnswerError(TypedDict):
    code: str
    message: str | None


class ExperimentGrade(TypedDict):
    score: float
    reason: str | None


class ExperimentAnswerEntry(TypedDict):
    label: Label
    state: Literal["pending", "running", "done", "cancelled"]
    request_id: str | None
    provider: str | None
    model_used: str | None
    prompt_version: int | None
    message: dict[str, Any] | None
    finish_reason: str | None
    cost_usd: float | None
    latency_ms: int | None
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    warning: str | None
    error: ExperimentAnswerError | None
    score: float | None
    grades: dict[str, ExperimentGrade] | None
    judge_error: str | None


class ExperimentItemEntry(TypedDict):
    position: int
    request_id: UUID
    requested_at: datetime
    prompt_config_id: UUID | None
    prompt_version: int | None
    preview: str | None
    winner: Literal["A", "B", "C", "D", "tie"] | None
    winner_by: str | None
    verdict: Literal["A", "B", "C", "D", "tie"] | None
    answers: list[ExperimentAnswerEntry]


class ExperimentCost(TypedDict):
    label: Label
    title: str
    cost_usd: float | None


class ExperimentEstimate(TypedDict):
    item_count: int
    newest_at: datetime | None
    oldest_at: datetime | None
    candidates: list[ExperimentCost]
    total_cost_usd: float | None
