from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, TypedDict
from uuid import UUID

Label = Literal["A", "B", "C", "D"]
State = Literal["pending", "running", "completed", "cancelled", "failed"]
VerdictName = Literal["passed", "worse", "undecided"]


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
    application: str | None


class ExperimentDataset(TypedDict):
    """The version of a data set; `is_current` says whether it is the latest one still."""

    id: UUID
    name: str
    version: int
    is_current: bool


class ExperimentEvaluatorEntry(TypedDict):
    name: str
    version: int
    title: str
    evaluator_id: UUID
    kind: str
    required: bool
    must_pass: bool
    min_rate: float | None


class ExperimentEntry(TypedDict):
    """`rollout_id` is that of the rollout whose shadow it is, null for all others."""

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
    dataset: ExperimentDataset | None
    rollout_id: UUID | None
    evaluators: list[ExperimentEvaluatorEntry]
    repeats: int
    baseline: Label | None
    margin: float
    reuse: bool
    max_cost_usd: float | None
    spent_usd: float
    verdict: VerdictName | None
    stopped_early: bool
    failure_code: Literal["budget", "provider", "timeout"] | None
    erased_items: int
    expired_items: int
    item_count: int
    answer_count: int
    done_count: int


class CandidateScores(TypedDict):
    """The mean score that one evaluator gave the answers of a candidate, and how many of them have no score."""

    evaluator: str
    mean: float | None
    scored: int
    unscored: int


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
    scores: list[CandidateScores]


class EvaluatorUnscored(TypedDict):
    """How many answers of the target and of the baseline have no score for one reason."""

    reason: str
    target: int
    baseline: int


class EvaluatorReport(TypedDict):
    """What one evaluator found about a target. Means and rates are null where nothing is scored; `low` to `high` is the
    95 % interval of the difference."""

    title: str
    required: bool
    must_pass: bool
    min_rate: float | None
    passes: bool
    target_mean: float | None
    baseline_mean: float | None
    difference: float | None
    low: float | None
    high: float | None
    wins: int
    ties: int
    losses: int
    pairs: int
    target_missing: int
    baseline_missing: int
    e_worse: float
    e_not_worse: float
    good_rate: float | None
    newly_failed: list[int]
    newly_failed_count: int
    unscored: list[EvaluatorUnscored]


class ScoresOfItem(TypedDict):
    target: float | None
    baseline: float | None


class WorstItem(TypedDict):
    position: int
    difference: float
    scores: dict[str, ScoresOfItem]


class WorseTag(TypedDict):
    evaluator: str
    tag: str
    pairs: int
    difference: float


class TargetReport(TypedDict):
    label: Label
    title: str
    verdict: VerdictName
    explanation: str
    e_worse: float
    evaluators: list[EvaluatorReport]
    worst_items: list[WorstItem]
    worse_tags: list[WorseTag]


class ExperimentReport(TypedDict):
    items_judged: int
    item_count: int
    targets: list[TargetReport]


class ExperimentDetail(ExperimentEntry):
    summary: list[ExperimentFigures]
    report: ExperimentReport | None


class ExperimentAnswerError(TypedDict):
    code: str
    message: str | None


class ExperimentGrade(TypedDict):
    score: float
    reason: str | None


class ExperimentScoreEntry(TypedDict):
    """What an evaluator gave an answer: a score from 0 to 1, or the reason why there is none."""

    evaluator: str
    value: float | None
    reason: str | None
    detail: str | None
    cost_usd: float | None
    request_ids: list[str]
    reused: bool


class ExperimentAnswerEntry(TypedDict):
    label: Label
    repeat: int
    state: Literal["awaited", "pending", "running", "answered", "scoring", "done", "cancelled"]
    reused: bool
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
    scores: list[ExperimentScoreEntry]


class ExperimentItemEntry(TypedDict):
    position: int
    dataset_item_id: UUID | None
    tags: list[str]
    request_id: UUID | None
    requested_at: datetime | None
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


class ExperimentJudgeCost(TypedDict):
    """What the scores of an evaluator will cost, or of the project's `judge_model`; null without a known price."""

    title: str
    model: str
    cost_usd: float | None


class ExperimentEstimate(TypedDict):
    item_count: int
    answer_count: int
    reused_answer_count: int
    newest_at: datetime | None
    oldest_at: datetime | None
    candidates: list[ExperimentCost]
    judges: list[ExperimentJudgeCost]
    total_cost_usd: float | None
