from __future__ import annotations

import math
from dataclasses import dataclass

from rollouts.evaluation.statistics.grid import WeightedHistogram, quantile
from rollouts.evaluation.statistics.strata import Strata

MISSES = 0.05
"""The probability that an interval ever excludes the true value."""

TIGHTEST_AT = 500.0  # The unit is weighted observations.


@dataclass(frozen=True, slots=True)
class Figures:
    """One metric of both arms, weighted by minute so that load and the provider's state cancel out: rates as shares,
    latencies in ms, costs in US dollars. None is unknown, or an open end of the interval.

    `difference` is target minus baseline, `low` to `high` its 95 % confidence sequence.
    """

    target: float | None = None
    baseline: float | None = None
    difference: float | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None


def half_width(noise: float, weight: float, misses: float) -> float:
    """Returns the half width of a confidence sequence for a weighted mean. `noise` is its variance, `weight` the number
    of observations, `misses` the probability that it ever excludes the true value on one side.

    Source: Waudby-Smith et al., arXiv 2103.06476, the one-sided asymptotic sequence, tightest at 500 observations.
    """
    level = -2 * math.log(2 * misses)
    scale = weight * (level + math.log(1 + level)) / TIGHTEST_AT
    return math.sqrt(noise * 2 * (scale + 1) / scale * math.log(1 + math.sqrt(scale + 1) / (2 * misses)))


def compared_means(strata: Strata, *, design: float, variance: float, unit: float = 1.0) -> Figures:
    if strata.weight <= 0:
        return Figures()
    target, baseline = strata.target / strata.weight * unit, strata.baseline / strata.weight * unit
    noise = variance * (strata.target_noise + strata.baseline_noise)
    half = half_width(noise * design / strata.weight**2, strata.weight, MISSES / 2) * unit
    difference = target - baseline
    return Figures(target, baseline, difference, _ratio(target, baseline), difference - half, difference + half)


def compared_percentiles(
    strata: Strata, target: WeightedHistogram, baseline: WeightedHistogram, *, design: float
) -> Figures:
    own, theirs = quantile(target, 0.95), quantile(baseline, 0.95)
    if own is None or theirs is None:
        return Figures()
    if strata.weight <= 0:
        return Figures(own, theirs, own - theirs, _ratio(own, theirs))
    own_low, own_high = _percentile_bounds(target, strata.target_noise, strata.weight, design)
    low, high = _percentile_bounds(baseline, strata.baseline_noise, strata.weight, design)
    return Figures(
        own,
        theirs,
        own - theirs,
        _ratio(own, theirs),
        None if own_low is None or high is None else own_low - high,
        None if own_high is None or low is None else own_high - low,
    )


def rate_variance(events: float, requests: int) -> float:
    # Half an event is added, because no event so far does not prove that there never will be one.
    rate = (events + 0.5) / (requests + 1)
    return rate * (1 - rate)


def value_variance(strata: Strata) -> float:
    return max(
        _variance(strata.target, strata.target_squared, strata.weight),
        _variance(strata.baseline, strata.baseline_squared, strata.weight),
    )


def _variance(total: float, squares: float, weight: float) -> float:
    if weight <= 0:
        return 0.0
    return max(0.0, squares / weight - (total / weight) ** 2)


def _percentile_bounds(
    weights: WeightedHistogram, arm_noise: float, weight: float, design: float
) -> tuple[float | None, float | None]:
    noise = 0.95 * 0.05 * arm_noise * design / weight**2
    half = half_width(noise, weight, MISSES / 4)
    low, high = 0.95 - half, 0.95 + half
    return (quantile(weights, low) if low > 0 else None, quantile(weights, high) if high < 1 else None)


def _ratio(target: float, baseline: float) -> float | None:
    return target / baseline if baseline > 0 else None
