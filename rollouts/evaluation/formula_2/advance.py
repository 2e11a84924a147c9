"""One closed minute more: counts in, state out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import reduce

from rollouts.evaluation.evidence import (
    LOWER_ODDS,
    ODDS,
    RARE_ERRORS,
    RARELY_SLOW,
    added,
    odds_factors,
    rare_factor,
    tilt_factors,
)
from rollouts.evaluation.formula_2.counts import ArmCounts, ClusterSums, MinuteCounts
from rollouts.evaluation.formula_2.policy import LATENCY_MARGIN, Metric
from rollouts.evaluation.formula_2.state import ArmTotals, Learning, MetricState, State, Strata
from rollouts.evaluation.grid import BINS_PER_MARGIN, Histogram, WeightedHistogram, value_of
from rollouts.evaluation.margin import margin_odds
from rollouts.evaluation.reference import Reference, reference_from


def advance(state: State, counts: MinuteCounts) -> State:
    """The state after one more minute. Raises ValueError for one that is not after those already counted."""
    if (counts.minute, counts.stage) <= (state.last_minute, state.stage):
        raise ValueError(
            f"minute {counts.minute} of stage {counts.stage} does not follow {state.last_minute} of {state.stage}"
        )
    same_stage = counts.stage == state.stage
    return replace(
        state,
        metrics=_metrics(state, counts),
        latency=_learned(state.latency, counts.target.latency, counts.baseline.latency),
        cost=_learned(state.cost, counts.target.cost, counts.baseline.cost),
        minutes=state.minutes + 1,
        last_minute=counts.minute,
        stage=counts.stage,
        stage_requests=counts.target.requests + (state.stage_requests if same_stage else 0),
        sample_ratio=state.sample_ratio.advance(
            stage=counts.stage, weight=counts.weight, target=counts.target.units, baseline=counts.baseline.units
        ),
        target=_totals(state.target, counts.target),
        baseline=_totals(state.baseline, counts.baseline),
        target_weights=_weighted(state.target_weights, counts.target.latency, counts.baseline.latency),
        baseline_weights=_weighted(state.baseline_weights, counts.baseline.latency, counts.target.latency),
    )


def replay(state: State, minutes: Iterable[MinuteCounts]) -> State:
    """The state after all of these minutes: the same as was stored, to the last digit."""
    return reduce(advance, minutes, state)


def _metrics(state: State, counts: MinuteCounts) -> Mapping[Metric, MetricState]:
    target, baseline, latency, cost = counts.target, counts.baseline, state.latency.reference, state.cost.reference
    after = {
        Metric.ERROR_RATE: _errors(state, target, baseline),
        Metric.LATENCY_P95: _slow(state.metrics[Metric.LATENCY_P95], target.latency, baseline.latency, latency),
        Metric.LATENCY_AVERAGE: _means(
            state.metrics[Metric.LATENCY_AVERAGE], target.latency, baseline.latency, latency, 1.0, LATENCY_MARGIN
        ),
        Metric.COST: _means(
            state.metrics[Metric.COST],
            target.cost,
            baseline.cost,
            cost,
            1 + state.policy.cost_allowance,
            state.policy.cost_margin,
        ),
    }
    return {metric: _settled(one, counts.clusters.get(metric)) for metric, one in after.items()}


def _settled(metric: MetricState, clusters: ClusterSums | None) -> MetricState:
    design = metric.design if clusters is None else design_effect(clusters)
    settled = replace(metric, design=design)
    return replace(settled, peak=max(settled.peak, settled.evidence))


def design_effect(sums: ClusterSums) -> float:
    """By how much a unit's requests count for less than independent ones would, at least 1.

    The variance of the units' sums around what their number of requests lets expect, by what it would be.
    """
    if not sums.requests:
        return 1.0
    mean = sums.total / sums.requests
    variance = sums.values_squared / sums.requests - mean**2
    if variance <= 0:
        return 1.0
    spread = sums.total_squared - 2 * mean * sums.cross + mean**2 * sums.requests_squared
    return max(1.0, spread / (variance * sums.requests))


def _errors(state: State, target: ArmCounts, baseline: ArmCounts) -> MetricState:
    metric = state.metrics[Metric.ERROR_RATE]
    strata = _binary_strata(metric.strata, target.errors, target.requests, baseline.errors, baseline.requests)
    if not target.requests:
        return metric
    # A rate above the margin is at least one percentage point.
    rare = rare_factor(events=target.errors, requests=target.requests, rates=RARE_ERRORS)
    if not baseline.requests:
        # Without a baseline beside it the target can only be held against the absolute rate.
        return replace(metric, safe=added(metric.safe, (0.0, rare)))
    minute = {
        "events": target.errors,
        "drawn": target.requests,
        "all_events": target.errors + baseline.errors,
        "total": target.requests + baseline.requests,
    }
    # From the minutes before only: a margin that knew this minute would not be fair.
    margin = margin_odds(errors=state.baseline.errors, requests=state.baseline.requests)
    safe = 0.0 if margin is None else -odds_factors(**minute, odds=(margin,))[0]
    return replace(
        metric,
        worse=added(metric.worse, odds_factors(**minute, odds=ODDS)),
        safe=added(metric.safe, (safe, rare)),
        strata=strata,
    )


def _slow(metric: MetricState, target: Histogram, baseline: Histogram, reference: Reference | None) -> MetricState:
    drawn, others = sum(target.values()), sum(baseline.values())
    if reference is None or not drawn or not others:
        return metric
    slow, theirs = _above(target, reference.slow_bin), _above(baseline, reference.slow_bin)
    # A target at the margin, divided by the margin, is as often slow as the baseline.
    eased = _above(target, reference.slow_bin + BINS_PER_MARGIN)
    # Where latencies hardly vary nothing is slower than the 95th percentile, and odds have nothing to compare. A target
    # at the margin has one request in twenty at 1.25 times that percentile or above.
    rare = rare_factor(
        events=_above(target, reference.slow_bin + BINS_PER_MARGIN - 1), requests=drawn, rates=RARELY_SLOW
    )
    total = drawn + others
    return replace(
        metric,
        worse=added(
            metric.worse, odds_factors(events=slow, drawn=drawn, all_events=slow + theirs, total=total, odds=ODDS)
        ),
        safe=added(
            metric.safe,
            (*odds_factors(events=eased, drawn=drawn, all_events=eased + theirs, total=total, odds=LOWER_ODDS), rare),
        ),
        strata=_binary_strata(metric.strata, slow, drawn, theirs, others),
    )


def _above(histogram: Histogram, bound: int) -> int:
    return sum(count for number, count in histogram.items() if number > bound)


def _means(
    metric: MetricState,
    target: Histogram,
    baseline: Histogram,
    reference: Reference | None,
    allowance: float,
    margin: float,
) -> MetricState:
    if not target or not baseline:
        return metric
    strata = _mean_strata(metric.strata, target, baseline)
    if reference is None:
        return replace(metric, strata=strata)
    return replace(
        metric,
        worse=added(metric.worse, tilt_factors(target, baseline, reference, divisor=allowance, upwards=True)),
        safe=added(metric.safe, tilt_factors(target, baseline, reference, divisor=margin, upwards=False)),
        strata=strata,
    )


def _binary_strata(strata: Strata, events: int, drawn: int, others_events: int, others: int) -> Strata:
    return _strata(strata, drawn, events, events, others, others_events, others_events)


def _mean_strata(strata: Strata, target: Histogram, baseline: Histogram) -> Strata:
    return _strata(strata, *_moments(target), *_moments(baseline))


def _moments(histogram: Histogram) -> tuple[int, float, float]:
    """Number, sum and sum of squares."""
    number, total, squares = 0, 0.0, 0.0
    for bin_number in sorted(histogram):
        count, value = histogram[bin_number], value_of(bin_number)
        number += count
        total += count * value
        squares += count * value * value
    return number, total, squares


def _strata(
    before: Strata, drawn: int, total: float, squares: float, others: int, others_total: float, others_squares: float
) -> Strata:
    if not drawn or not others:
        return before
    own_share, other_share = others / (drawn + others), drawn / (drawn + others)
    weight = drawn * own_share
    return Strata(
        weight=before.weight + weight,
        target=before.target + own_share * total,
        baseline=before.baseline + other_share * others_total,
        target_squared=before.target_squared + own_share * squares,
        baseline_squared=before.baseline_squared + other_share * others_squares,
        target_noise=before.target_noise + weight * own_share,
        baseline_noise=before.baseline_noise + weight * other_share,
    )


def _weighted(before: WeightedHistogram, own: Histogram, other: Histogram) -> WeightedHistogram:
    drawn, others = sum(own.values()), sum(other.values())
    if not drawn or not others:
        return before
    share, after = others / (drawn + others), dict(before)
    for number, count in own.items():
        after[number] = after.get(number, 0.0) + share * count
    return after


def _learned(learning: Learning, target: Histogram, baseline: Histogram) -> Learning:
    if learning.reference is not None or not (target or baseline):
        return learning
    values = dict(learning.values)
    for histogram in (target, baseline):
        for number, count in histogram.items():
            values[number] = values.get(number, 0) + count
    return Learning(values, reference_from(values))


def _totals(before: ArmTotals, counts: ArmCounts) -> ArmTotals:
    return ArmTotals(
        requests=before.requests + counts.requests,
        errors=before.errors + counts.errors,
        answered=before.answered + sum(counts.latency.values()),
        latency_ms=before.latency_ms + counts.latency_ms,
        priced=before.priced + sum(counts.cost.values()),
        cost_usd=before.cost_usd + counts.cost_usd,
    )
