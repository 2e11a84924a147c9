from __future__ import annotations

import math
from datetime import datetime
from typing import Any, Literal, TypedDict
from uuid import UUID

from rollouts.evaluation.power import RolloutDetection


class RolloutStageMinima(TypedDict):
    number: int
    weight: int
    min_duration_minutes: int
    min_requests: int
    settle_minutes: int


class RolloutStageEntry(RolloutStageMinima):
    status: Literal["pending", "active", "completed", "skipped", "rolled_back"]
    entered_at: datetime | None
    left_at: datetime | None


class RolloutEvaluation(TypedDict):
    status: str | None
    decision: str | None
    reason: str | None
    explanation: str | None
    overdue: bool | None
    decided_at: datetime


class EarlierRollbacks(TypedDict):
    count: int
    latest_at: datetime | None
    rollout_ids: list[UUID]


class RolloutGateDataset(TypedDict):
    """The data set that a gate asks for; its name is null once it is deleted."""

    id: UUID
    name: str | None


class RolloutShadowEvaluator(TypedDict):
    evaluator_id: UUID
    title: str


class RolloutShadow(TypedDict):
    """The figures of a shadow. Of the `sampled` requests `taken` are compared and the others are `skipped`, by reason;
    the figures from `pairs` on are those of the last look, and `missing` are pairs without a comparison. 20 of
    `e_not_worse` passes, 100 of `e_worse` is worse."""

    state: Literal["pending", "running", "completed", "cancelled", "failed"]
    failure: str | None
    evaluator: RolloutShadowEvaluator
    rate: float
    budget_usd: float
    spent_usd: float
    sampled: int
    taken: int
    skipped: dict[str, int]
    pairs: int
    wins: int
    ties: int
    losses: int
    missing: int
    e_worse: float
    e_not_worse: float


class RolloutGate(TypedDict):
    """What has to be shown before a rollout may begin, and where that stands: before the start as it is now, afterwards
    as it was then. `reason` says what was shown or is missing, and of an overridden gate why `by` overrode it; the
    experiment is the one that passed, or that comes nearest to it. Without a `dataset` any will do."""

    kind: Literal["none", "experiment", "shadow"]
    dataset: RolloutGateDataset | None
    state: Literal["none", "passed", "not_passed", "overridden"]
    experiment_id: UUID | None
    shadow: RolloutShadow | None
    reason: str | None
    by: str | None


class RolloutEvaluator(TypedDict):
    """An evaluator whose scores are judged: before the start as it is asked for, and afterwards as it was at the start,
    whatever is changed later. `calibration` is `rule` for one that asks no model, and else the state that its judge
    had; `margin_scale` how much of a true difference its scores show at least, and null where nobody knows: such a one
    never passes. `label_share` is null where no labels correct its scores.

    With `score_name` it is an outcome, the scores of that name that applications send, and has none of these: a value
    of `worst` counts as 0 and one of `best` as 1. `goal` makes the rollout an A/B test of it, whose `margin` is the
    smallest gain that counts."""

    evaluator_id: UUID | None
    version: int | None
    title: str | None
    kind: str | None
    action: Literal["roll_back", "hold", "ignore"] | None
    margin: float
    required: bool
    label_share: float | None
    margin_scale: float | None
    calibration: Literal["rule", "uncalibrated", "calibrated", "stale", "drifted"] | None
    score_name: str | None
    worst: float
    best: float
    goal: bool


class RolloutEntry(TypedDict):
    id: UUID
    kind: Literal["rollout", "ab_test"]
    project_id: UUID
    config_id: UUID
    config_name: str
    baseline_version_id: UUID
    baseline_version_number: int
    target_version_id: UUID
    target_version_number: int
    name: str
    mode: Literal["auto", "manual"]
    allocation_type: Literal["random", "user_sticky", "session_sticky"]
    policy: dict[str, Any]
    quality: list[RolloutEvaluator]
    warnings: list[str]
    gate: RolloutGate
    status: Literal["pending", "running", "paused", "completed", "rolled_back"]
    current_stage: int | None
    current_weight: int | None
    stages: list[RolloutStageEntry]
    evaluation: RolloutEvaluation | None
    earlier_rollbacks: EarlierRollbacks
    created_by: str
    created_at: datetime
    started_at: datetime | None
    stage_started_at: datetime | None
    ended_at: datetime | None


class RolloutTransitionEntry(TypedDict):
    id: int
    action: str
    from_status: str
    to_status: str
    from_stage: int
    to_stage: int
    actor: str
    reason: str
    figures: Any
    created_at: datetime


class RolloutDetail(RolloutEntry):
    transitions: list[RolloutTransitionEntry]


class RolloutArm(TypedDict):
    """All requests of the arm up to now: those that are left out, cache hits among them, those whose question was in
    the cache of an arm, and the others, which were answered or not."""

    version_id: UUID
    version_number: int
    request_count: int
    cache_hit_count: int
    left_out_count: int
    left_out: dict[str, int]
    uncompared_count: int
    answered_count: int
    unanswered_count: int
    unanswered_rate: float
    unanswered_reasons: dict[str, int]
    error_count: int
    error_rate: float
    contract_violation_count: int
    truncated_count: int
    served_by_fallback_count: int
    empty_count: int
    stopped_count: int
    average_latency_ms: float | None
    p95_latency_ms: float | None
    total_cost_usd: float
    average_cost_usd: float
    unpriced_request_count: int
    fallback_request_count: int


class RolloutOpenRequests(TypedDict):
    """Requests of the arm that were allocated a while ago and have no first output."""

    target: int
    baseline: int


class RolloutForecast(TypedDict):
    """The forecast of the present stage if requests keep coming as they did in the last 24 hours. `minutes_to_minima`
    is the time until both of its minima are met; with `evidence_decides` the stage then waits for the evidence."""

    requests_per_minute: float | None
    minutes_to_minima: float | None
    evidence_decides: bool
    explanation: str


class RolloutPower(TypedDict):
    """The faults that would be found at the traffic of the last 24 hours: a typical `fall`, the `smallest` one that
    is found before all traffic goes to the target, and an average latency of 1.3 times the usual. Null means
    that the fault is not found."""

    fall: RolloutDetection
    smallest: RolloutDetection | None
    slower_minutes: float | None
    explanation: str


class RolloutStageForecast(RolloutStageMinima):
    """A stage of a rollout that is not made yet. `minutes` is the time until both of its minima are met and
    `target_requests` the requests of the target in it; null where the traffic is unknown."""

    begins_after_minutes: float | None
    minutes: float | None
    target_requests: float | None


class RolloutPlan(TypedDict):
    """The forecast of a rollout that is not made yet, at the traffic of the prompt config in the last 24 hours, which
    is null without requests. With `evidence_decides` some stages wait for the evidence beside their minima."""

    request_count: int
    requests_per_minute: float | None
    unanswered_rate: float | None
    minutes: float | None
    stages: list[RolloutStageForecast]
    evidence_decides: bool
    explanation: str
    power: RolloutPower | None


class RolloutInterval(TypedDict):
    """The interval of a difference. An end that is not known is null."""

    low: float | None
    high: float | None
    confidence: float


def interval(low: float | None, high: float | None) -> RolloutInterval:
    return {"low": finite(low), "high": finite(high), "confidence": 0.95}


def finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


class RolloutMetric(TypedDict):
    """One metric of both arms. It does not fail below a `difference` of `failing_difference`.

    `evidence` (that the target is worse), `user_evidence` (that its users fare worse) and `safety` (that it is
    harmless, by its requests or its users) are natural logarithms, as are the thresholds at which each of them
    decides. `user_evidence` is null for random allocation. `users_undecided` means that the metric would fail if its
    users agreed, and `decides` that the verdict rests on this metric; a metric that is not `judged` decides nothing."""

    status: Literal["passing", "failing", "inconclusive"]
    judged: bool
    action: Literal["roll_back", "hold", "ignore"]
    target: float | None
    baseline: float | None
    difference: float | None
    failing_difference: float | None
    ratio: float | None
    interval: RolloutInterval
    p_value: float
    evidence: float
    evidence_threshold: float | None
    safety: float
    safety_threshold: float
    user_evidence: float | None
    users_undecided: bool
    decides: bool
    design_effect: float | None
    explanation: str


class RolloutEvaluatorTasks(TypedDict):
    """The answers of an arm that were due: up to now `due`, of which `done` have a score and `missing` ended without
    one, by reason. Of them the verdict took those of `judged`, without a score or a label in time `judged_missing`, and
    of `labels_due` people labelled so many. `labels_awaited` are due and not given yet: the verdict waits for them."""

    due: int
    done: int
    missing: int
    missing_by_reason: dict[str, int]
    judged: int
    judged_missing: int
    labels_due: int
    labelled: int
    labels_awaited: int


class RolloutJudgedTasks(TypedDict):
    target: RolloutEvaluatorTasks
    baseline: RolloutEvaluatorTasks


class RolloutJudgedEvaluator(RolloutEvaluator):
    """The mean scores of both arms, or where labels correct them those of labels, with the interval of their
    `difference`. Of the `pairs` of answers `complete_pairs` have both scores. `evidence`, `user_evidence` and `safety`
    are natural logarithms, as in metrics; `worse` is whether the evaluator is named by itself, which decides nothing.
    `not_passing` says why it does not pass. With `drifted` it decides nothing any more, and without `is_sampled` no
    more answers are due for it."""

    status: Literal["passing", "failing", "inconclusive"]
    not_passing: Literal["uncalibrated", "judge_drifted", "missing_scores", "not_certain", "labels_unreliable"] | None
    worse: bool
    drifted: bool
    is_sampled: bool
    decides: bool
    pairs: int
    complete_pairs: int
    missing_share: float
    tasks: RolloutJudgedTasks
    target: float | None
    baseline: float | None
    difference: float | None
    interval: RolloutInterval
    evidence: float
    user_evidence: float | None
    safety: float
    safety_threshold: float
    design_effect: float | None
    explanation: str


class RolloutGoal(TypedDict):
    """The verdict of an A/B test on its goal, the outcome `title`: `evidence` that the target is better, or `safety`
    that it is not better by the margin, has reached the `threshold`; all three are natural logarithms."""

    title: str
    verdict: Literal["better", "not_better", "undecided"]
    evidence: float
    safety: float
    threshold: float
    explanation: str


class RolloutQuality(TypedDict):
    """What the scores of all evaluators together say. `action` is what follows where they fail; `unscored` holds a
    rollout in which more of the target's scores are missing; `required` are the evaluators that have to pass and do
    not. `through` is the end of the minutes whose tasks were judged, by basis: `scores`, `labels` for evaluators
    whose scores labels correct, or `outcomes`. `judged` is false where all of them are ignored; only an A/B test has a
    `goal`."""

    status: Literal["passing", "failing", "inconclusive"]
    judged: bool
    action: Literal["roll_back", "hold"] | None
    evidence: float | None
    evidence_threshold: float
    unscored: bool
    unscored_evidence: float | None
    unscored_threshold: float
    required: list[str]
    through: dict[str, datetime]
    goal: RolloutGoal | None
    evaluators: list[RolloutJudgedEvaluator]


class RolloutSignalArm(TypedDict):
    """What users did after answers of one arm: of `request_count` answers that were looked at, `event_count`. The other
    answered requests are not counted, by reason. The interval of the share holds for one look."""

    event_count: int
    request_count: int
    share: float | None
    interval: RolloutInterval
    not_counted: dict[str, int]


class RolloutSignal(TypedDict):
    """A signal of users, which is shown and never decides."""

    target: RolloutSignalArm
    baseline: RolloutSignalArm
    difference: float | None
    interval: RolloutInterval


class RolloutSignals(TypedDict):
    """What users did after an answer: `asked_again` within ten minutes, `edited` it before it was used, or `left` the
    session, in which no request came any more."""

    asked_again: RolloutSignal
    edited: RolloutSignal
    left: RolloutSignal


class RolloutSegmentArm(TypedDict):
    """The requests of one arm in a segment since it became one; with sticky allocation its users, once a stage."""

    request_count: int
    unanswered_count: int
    unanswered_rate: float
    contract_violation_count: int
    empty_count: int


class RolloutSegment(TypedDict):
    """A part of the traffic: the requests with one `value` of a `dimension`, which is `language`, `length`, `model`,
    `key` or `metadata.<name>`. `label` is the value for people. A segment in which the target is worse is `named`, a
    warning that decides nothing; `evidence` and the threshold for a further one are natural logarithms."""

    dimension: str
    value: str
    label: str
    named: bool
    target: RolloutSegmentArm
    baseline: RolloutSegmentArm
    evidence: float
    evidence_threshold: float


class RolloutWatchMetric(TypedDict):
    """One metric of the target at 100 %, or the mean score of an evaluator, in the units of the comparison; of
    `latency_p95` it is the share of answers that were slower than the baseline's 95th percentile. `before` is the
    baseline's figure of the week before at the same hours of the day. The bounds on the side of what is better hold
    together, however often one looks: those of metrics at 5 %, those of scores at a ninth of it. `warned_at` is null
    unless the watch warned."""

    value: float
    before: float
    difference: float
    interval: RolloutInterval
    warned_at: datetime | None


class RolloutWatch(TypedDict):
    """The watch over a target that gets all of the traffic, against the baseline's last week before `since`. A silent
    one has nothing to compare with. It goes on until a week after the rollout completed, and never moves it."""

    state: Literal["silent", "watching", "warned"]
    explanation: str
    since: datetime
    through: datetime | None
    until: datetime | None
    ended_at: datetime | None
    baseline_request_count: int
    request_count: int
    metrics: dict[str, RolloutWatchMetric]
    scores: dict[str, RolloutWatchMetric]


class RolloutComparison(TypedDict):
    rollout_id: UUID
    rollout_status: str
    mode: str
    current_stage: int | None
    overall_status: Literal["passing", "failing", "inconclusive"]
    decision: str
    reason: str
    explanation: str
    target: RolloutArm
    baseline: RolloutArm
    metrics: dict[str, RolloutMetric]
    quality: RolloutQuality | None
    signals: RolloutSignals | None
    segments: list[RolloutSegment]
    sample_ratio: Any
    minutes_evaluated: int
    target_requests_evaluated: int
    stage_requests_evaluated: int
    overdue: bool
    evaluated_through: Any
    evaluated_at: datetime | None
    formula: int
    open_requests: RolloutOpenRequests
    forecast: RolloutForecast | None
    power: RolloutPower | None
    watch: RolloutWatch | None
    earlier_rollbacks: EarlierRollbacks
