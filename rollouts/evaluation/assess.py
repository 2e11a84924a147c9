from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from rollouts.evaluation.comparison import figures
from rollouts.evaluation.counts import events_of
from rollouts.evaluation.policy import (
    FAIL_AT,
    MIN_TARGET_REQUESTS,
    PASS_AT,
    RATE_COUNT_SIZE,
    RATES,
    Metric,
    failing_difference,
    rate_size,
)
from rollouts.evaluation.state import ArmTotals, MetricState, State
from rollouts.evaluation.terms import Action, Status


@dataclass(frozen=True, slots=True)
class MetricStatus:
    """`evidence` is ln E, `safety` ln S, `p_value` the anytime-valid one.

    A metric that is not `judged` decides nothing: it is ignored, or neither arm has any value of it (no prices, only
    free models).

    `user_evidence` is the users' highest ln E so far, for sticky allocation only. `users_undecided`: the metric would
    fail by its requests, but few users may have made the difference, and users counted once each do not show it. One
    that does not have to pass may only hold the rollout.
    """

    metric: Metric
    status: Status
    judged: bool
    evidence: float
    safety: float
    p_value: float
    user_evidence: float | None = None
    users_undecided: bool = False
    has_to_pass: bool = True


@dataclass(frozen=True, slots=True)
class Assessment:
    """`sample_ratio_alarm`: chance cannot explain the arms' shares of the traffic, so only a failure is believed."""

    status: Status
    metrics: Mapping[Metric, MetricStatus]
    sample_ratio_alarm: bool
    target_requests: int
    minutes: int

    def failing(self, action: Action, state: State) -> list[Metric]:
        return [
            one.metric
            for one in self.metrics.values()
            if one.judged and one.status is Status.FAILING and state.policy.action(one.metric) is action
        ]

    @property
    def undecided_by_users(self) -> list[Metric]:
        return [one.metric for one in self.metrics.values() if one.judged and one.users_undecided]


def assess(state: State) -> Assessment:
    metrics = {metric: _metric(state, metric) for metric in Metric}
    alarmed = state.sample_ratio.alarmed
    return Assessment(
        status=_overall(metrics, alarmed=alarmed),
        metrics=metrics,
        sample_ratio_alarm=alarmed,
        target_requests=state.target.requests,
        minutes=state.minutes,
    )


def _overall(metrics: Mapping[Metric, MetricStatus], *, alarmed: bool) -> Status:
    judged = [one for one in metrics.values() if one.judged]
    if any(one.status is Status.FAILING for one in judged):
        return Status.FAILING
    asked = [one for one in judged if one.has_to_pass] or judged
    if alarmed or not asked or any(one.status is not Status.PASSING for one in asked):
        return Status.INCONCLUSIVE
    return Status.PASSING


def _metric(state: State, metric: Metric) -> MetricStatus:
    one = state.metrics[metric]
    safety = one.safety
    enough = state.target.requests >= MIN_TARGET_REQUESTS
    worse, failing = one.evidence >= FAIL_AT[metric], _fails(one, FAIL_AT[metric])
    if (worse or failing) and not ((enough or metric in RATES) and _is_sizeable(state, metric)):
        worse = failing = False
    if failing or worse:
        status = Status.FAILING if failing else Status.INCONCLUSIVE
    else:
        status = Status.PASSING if enough and safety >= PASS_AT else Status.INCONCLUSIVE
    return MetricStatus(
        metric=metric,
        status=status,
        judged=_is_judged(state, metric),
        evidence=one.evidence,
        safety=safety,
        p_value=min(1.0, math.exp(-one.peak)),
        user_evidence=one.user_evidence,
        users_undecided=worse and not failing,
        has_to_pass=metric is not Metric.LATENCY_AVERAGE or state.formula == 3,
    )


def _fails(one: MetricState, fail_at: float) -> bool:
    """Users counted once each are believed at any time. Under sticky allocation, requests are believed only while their
    design effect (the latest block's too) is small, or when the users' evidence agrees."""
    if one.users is None:
        return one.evidence >= fail_at
    if one.users.peak >= fail_at:
        return True
    return one.evidence >= fail_at and (one.is_independent or one.users_agree)


def _is_judged(state: State, metric: Metric) -> bool:
    if state.policy.action(metric) is Action.IGNORE:
        return False
    if metric in (Metric.UNANSWERED, Metric.ERROR_RATE):
        return True
    return _has_values(state.target, metric) or _has_values(state.baseline, metric)


def _has_values(arm: ArmTotals, metric: Metric) -> bool:
    if metric in RATES:
        return events_of(arm, metric)[1] > 0
    return arm.cost_usd > 0 if metric is Metric.COST else arm.latency_ms > 0


def _is_sizeable(state: State, metric: Metric) -> bool:
    """Certainty alone would fail a target for one millisecond."""
    if metric in RATES:
        if events_of(state.target, metric)[0] < RATE_COUNT_SIZE:
            return False
        if state.formula == 3:
            return state.metrics[metric].answered_rates.is_above(*rate_size(metric))
    shown = figures(state, metric)
    if shown.difference is None or shown.baseline is None:
        return False
    return shown.difference >= failing_difference(metric, shown.baseline, state.policy)
