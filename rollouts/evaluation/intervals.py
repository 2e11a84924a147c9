"""Figures of both arms beside each other, with intervals that hold however often one looks."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rollouts.evaluation.grid import WeightedHistogram, quantile
from rollouts.evaluation.strata import Strata

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


def half_width(noise: float, weight: float, misses: float) -> float:
    """Of a confidence sequence for a weighted mean: `noise` its variance, `weight` the observations behind it, `misses`
    the chance that it ever leaves the truth out on one side.

    Waudby-Smith et al., arXiv 2103.06476, the one-sided asymptotic sequence, tightest at 500 observations.
    """
    level = -2 * math.log(2 * misses)
    scale = weight * (level + math.log(1 + level)) / _TIGHTEST_AT
    return math.sqrt(noise * 2 * (scale + 1) / scale * math.log(1 + math.sqrt(scale + 1) / (2 * misses)))


def compared_means(strata: Strata, *, design: float, variance: float, unit: float = 1.0) -> Figures:
    """Rates or means: `variance` of a single value, counted `design` times where values cluster; `unit` is what 1
    stands for."""
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
    """The 95th percentiles of values that are weighted as the strata are."""
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


def rate_variance(events: int, requests: int) -> float:
    """Of one request, as far as so many of them can tell."""
    # Half an event more than was seen: no event at all is no proof that there never will be one.
    rate = (events + 0.5) / (requests + 1)
    return rate * (1 - rate)


def value_variance(strata: Strata) -> float:
    """Of one value: the larger of both arms'."""
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
    """The values between which the arm's 95th percentile lies: those whose shares are as far as chance may carry."""
    noise = 0.95 * 0.05 * arm_noise * design / weight**2
    half = half_width(noise, weight, MISSES / 4)
    low, high = 0.95 - half, 0.95 + half
    return (quantile(weights, low) if low > 0 else None, quantile(weights, high) if high < 1 else None)


def _ratio(target: float, baseline: float) -> float | None:
    return target / baseline if baseline > 0 else None
