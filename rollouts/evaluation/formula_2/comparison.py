"""The figures of target and baseline beside each other, with intervals that hold however often one looks."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rollouts.evaluation.formula_2.policy import Metric
from rollouts.evaluation.formula_2.state import MetricState, State, Strata
from rollouts.evaluation.grid import WeightedHistogram, quantile

MISSES = 0.05
"""The chance that an interval ever leaves the truth out."""

_TIGHTEST_AT = 500.0  # weighted observations


@dataclass(frozen=True, slots=True)
class Figures:
    """One metric of both arms, weighted by minute so that load and the provider's state do not enter: rates as shares,
    latencies in ms, costs in US dollars. None where nothing is known; an open end of the interval is None, too.

    `difference` is the target's figure minus the baseline's, `low` to `high` its 95 % confidence sequence.
    """

    target: float | None = None
    baseline: float | None = None
    difference: float | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None


def figures(state: State, metric: Metric) -> Figures:
    one = state.metrics[metric]
    if metric is Metric.LATENCY_P95:
        return _percentiles(one, state.target_weights, state.baseline_weights)
    if metric is Metric.ERROR_RATE:
        # Few errors in an arm say little about how much their number varies, so the larger variance stands for both.
        variance = max(
            _rate_variance(state.target.errors, state.target.requests),
            _rate_variance(state.baseline.errors, state.baseline.requests),
        )
        return _means(one, variance, 1.0)
    strata = one.strata
    variance = max(
        _variance(strata.target, strata.target_squared, strata),
        _variance(strata.baseline, strata.baseline_squared, strata),
    )
    return _means(one, variance, 1e-10 if metric is Metric.COST else 1.0)


def half_width(noise: float, weight: float, misses: float) -> float:
    """Of a confidence sequence for a weighted mean: `noise` its variance, `weight` the observations behind it, `misses`
    the chance that it ever leaves the truth out on one side.

    Waudby-Smith et al., arXiv 2103.06476, the one-sided asymptotic sequence, tightest at 500 observations.
    """
    level = -2 * math.log(2 * misses)
    scale = weight * (level + math.log(1 + level)) / _TIGHTEST_AT
    return math.sqrt(noise * 2 * (scale + 1) / scale * math.log(1 + math.sqrt(scale + 1) / (2 * misses)))


def _means(one: MetricState, variance: float, unit: float) -> Figures:
    strata = one.strata
    if strata.weight <= 0:
        return Figures()
    target, baseline = strata.target / strata.weight * unit, strata.baseline / strata.weight * unit
    noise = variance * (strata.target_noise + strata.baseline_noise)
    half = half_width(noise * one.design / strata.weight**2, strata.weight, MISSES / 2) * unit
    difference = target - baseline
    return Figures(target, baseline, difference, _ratio(target, baseline), difference - half, difference + half)


def _rate_variance(events: int, requests: int) -> float:
    # Half an event more than was seen: no event at all is no proof that there never will be one.
    rate = (events + 0.5) / (requests + 1)
    return rate * (1 - rate)


def _variance(total: float, squares: float, strata: Strata) -> float:
    if strata.weight <= 0:
        return 0.0
    return max(0.0, squares / strata.weight - (total / strata.weight) ** 2)


def _percentiles(one: MetricState, target: WeightedHistogram, baseline: WeightedHistogram) -> Figures:
    own, theirs = quantile(target, 0.95), quantile(baseline, 0.95)
    if own is None or theirs is None:
        return Figures()
    if one.strata.weight <= 0:
        return Figures(own, theirs, own - theirs, _ratio(own, theirs))
    own_low, own_high = _percentile_bounds(target, one.strata.target_noise, one)
    low, high = _percentile_bounds(baseline, one.strata.baseline_noise, one)
    return Figures(
        own,
        theirs,
        own - theirs,
        _ratio(own, theirs),
        None if own_low is None or high is None else own_low - high,
        None if own_high is None or low is None else own_high - low,
    )


def _percentile_bounds(
    weights: WeightedHistogram, arm_noise: float, one: MetricState
) -> tuple[float | None, float | None]:
    """The values between which the arm's 95th percentile lies: those whose shares are as far as chance may carry."""
    weight = one.strata.weight
    noise = 0.95 * 0.05 * arm_noise * one.design / weight**2
    half = half_width(noise, weight, MISSES / 4)
    low, high = 0.95 - half, 0.95 + half
    return (quantile(weights, low) if low > 0 else None, quantile(weights, high) if high < 1 else None)


def _ratio(target: float, baseline: float) -> float | None:
    return target / baseline if baseline > 0 else None
