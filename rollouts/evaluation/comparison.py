from __future__ import annotations

from rollouts.evaluation.counts import events_of
from rollouts.evaluation.policy import RATES, Metric
from rollouts.evaluation.state import State
from rollouts.evaluation.statistics.intervals import (
    Figures,
    compared_means,
    compared_percentiles,
    rate_variance,
    value_variance,
)


def figures(state: State, metric: Metric) -> Figures:
    one = state.metrics[metric]
    design = one.next_design or 1.0
    if metric is Metric.LATENCY_P95:
        return compared_percentiles(one.strata, state.target_weights, state.baseline_weights, design=design)
    if metric in RATES:
        # Few events in an arm say little about how much their number varies, so the larger variance stands for both.
        variance = max(rate_variance(*events_of(arm, metric)) for arm in (state.target, state.baseline))
        return compared_means(one.strata, design=design, variance=variance)
    unit = 1e-10 if metric is Metric.COST else 1.0
    return compared_means(one.strata, design=design, variance=value_variance(one.strata), unit=unit)
