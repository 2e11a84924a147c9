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
from rollouts.evaluation.statistics.strata import Strata

_DIGITS = 12


def figures(state: State, metric: Metric) -> Figures:
    """Returns the figures that decide whether the difference is large enough to fail."""
    one = state.metrics[metric]
    design = one.next_design or 1.0
    if metric is Metric.LATENCY_P95:
        return compared_percentiles(one.strata, state.target_weights, state.baseline_weights, design=design)
    if metric in RATES:
        return _rates(state, metric, design)
    unit = 1e-10 if metric is Metric.COST else 1.0
    return compared_means(one.strata, design=design, variance=value_variance(one.strata), unit=unit)


def _rates(state: State, metric: Metric, design: float) -> Figures:
    one = state.metrics[metric]
    arms = [events_of(arm, metric) for arm in (state.target, state.baseline)]
    answered = one.answered_rates
    # Few events in an arm say little about how much their number varies, so the larger variance stands for both.
    if state.formula == 3 or answered.weight <= 0:
        variance = max(rate_variance(*arm) for arm in arms)
        return compared_means(one.strata, design=design, variance=variance)
    weight = answered.weight
    # Rounded, because all requests of an arm are a share of 1 and not of nearly 1.
    target, baseline = (round(total / weight, _DIGITS) for total in (answered.target, answered.baseline))
    variance = max(
        rate_variance(rate * requests, requests) for rate, (_, requests) in zip((target, baseline), arms, strict=True)
    )
    # The noise of both arms together is at most the weight: all of it where every request went well.
    strata = Strata(weight, weight * target, weight * baseline, target_noise=weight)
    return compared_means(strata, design=design, variance=variance)
