"""The figures of target and baseline side by side, with confidence sequences."""

from __future__ import annotations

from rollouts.evaluation.formula_1.policy import Metric
from rollouts.evaluation.formula_1.state import State
from rollouts.evaluation.intervals import Figures, compared_means, compared_percentiles, rate_variance, value_variance


def figures(state: State, metric: Metric) -> Figures:
    one = state.metrics[metric]
    if metric is Metric.LATENCY_P95:
        return compared_percentiles(one.strata, state.target_weights, state.baseline_weights, design=one.design)
    if metric is Metric.ERROR_RATE:
        # Few errors in an arm say little about how much their number varies, so the larger variance stands for both.
        variance = max(
            rate_variance(state.target.errors, state.target.requests),
            rate_variance(state.baseline.errors, state.baseline.requests),
        )
        return compared_means(one.strata, design=one.design, variance=variance)
    unit = 1e-10 if metric is Metric.COST else 1.0
    return compared_means(one.strata, design=one.design, variance=value_variance(one.strata), unit=unit)
