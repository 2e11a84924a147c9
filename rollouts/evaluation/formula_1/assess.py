"""The status of each metric after the minutes so far: passing, failing or not decided yet."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from rollouts.evaluation.formula_1.policy import (
    COST_SIZE,
    ERROR_COUNT_SIZE,
    ERROR_RATE_SIZE,
    FAIL_AT,
    LATENCY_AVERAGE_SIZE,
    LATENCY_P95_SIZE,
    MIN_TARGET_REQUESTS,
    PASS_AT,
    Metric,
)
from rollouts.evaluation.formula_1.state import ArmTotals, State
from rollouts.evaluation.grid import quantile
from rollouts.evaluation.terms import Action, Status


@dataclass(frozen=True, slots=True)
class MetricStatus:
    """The status of one metric. `evidence` is ln E, `safety` ln S, `p_value` the anytime-valid one.

    A metric that is not `judged` decides nothing: it is ignored, or neither arm has any value of it (no prices, only
    free models, only cache hits).
    """

    metric: Metric
    status: Status
    judged: bool
    evidence: float
    safety: float
    p_value: float


@dataclass(frozen=True, slots=True)
class Assessment:
    """The statuses of all metrics. `sample_ratio_alarm` means that chance cannot explain the arms' shares of the
    traffic, so that only a failure is believed."""

    status: Status
    metrics: Mapping[Metric, MetricStatus]
    sample_ratio_alarm: bool
    target_requests: int
    minutes: int

    def failing(self, action: Action, state: State) -> list[Metric]:
        """Returns the failing metrics that lead to `action`."""
        return [
            one.metric
            for one in self.metrics.values()
            if one.judged and one.status is Status.FAILING and state.policy.action(one.metric) is action
        ]


def assess(state: State) -> Assessment:
    metrics = {metric: _metric(state, metric) for metric in Metric}
    return Assessment(
        status=_overall(state, metrics),
        metrics=metrics,
        sample_ratio_alarm=state.sample_ratio.alarmed,
        target_requests=state.target.requests,
        minutes=state.minutes,
    )


def _overall(state: State, metrics: Mapping[Metric, MetricStatus]) -> Status:
    judged = [one for one in metrics.values() if one.judged]
    if any(one.status is Status.FAILING for one in judged):
        return Status.FAILING
    if state.sample_ratio.alarmed or not judged or any(one.status is not Status.PASSING for one in judged):
        return Status.INCONCLUSIVE
    return Status.PASSING


def _metric(state: State, metric: Metric) -> MetricStatus:
    one = state.metrics[metric]
    return MetricStatus(
        metric=metric,
        status=_status(state, metric),
        judged=_is_judged(state, metric),
        evidence=one.evidence,
        safety=one.safety,
        p_value=min(1.0, math.exp(-one.peak)),
    )


def _status(state: State, metric: Metric) -> Status:
    one = state.metrics[metric]
    enough = state.target.requests >= MIN_TARGET_REQUESTS
    if (enough or metric is Metric.ERROR_RATE) and one.evidence >= FAIL_AT[metric] and _is_sizeable(state, metric):
        return Status.FAILING
    return Status.PASSING if enough and one.safety >= PASS_AT else Status.INCONCLUSIVE


def _is_judged(state: State, metric: Metric) -> bool:
    if state.policy.action(metric) is Action.IGNORE:
        return False
    return metric is Metric.ERROR_RATE or any(_has_values(arm, metric) for arm in (state.target, state.baseline))


def _has_values(arm: ArmTotals, metric: Metric) -> bool:
    return arm.cost_usd > 0 if metric is Metric.COST else arm.latency_ms > 0


def _is_sizeable(state: State, metric: Metric) -> bool:
    """Returns whether the difference is large enough to matter. Certainty alone would fail a target for one
    millisecond."""
    strata = state.metrics[metric].strata
    if metric is Metric.ERROR_RATE:
        plus, times = ERROR_RATE_SIZE
        return (
            state.target.errors >= ERROR_COUNT_SIZE
            and strata.target - strata.baseline >= plus * strata.weight
            and strata.target >= times * strata.baseline
        )
    if metric is Metric.LATENCY_P95:
        target, baseline = quantile(state.target_weights, 0.95), quantile(state.baseline_weights, 0.95)
        return target is not None and baseline is not None and target >= LATENCY_P95_SIZE * baseline
    if metric is Metric.LATENCY_AVERAGE:
        return strata.target >= LATENCY_AVERAGE_SIZE * strata.baseline
    return strata.target >= COST_SIZE * (1 + state.policy.cost_allowance) * strata.baseline
