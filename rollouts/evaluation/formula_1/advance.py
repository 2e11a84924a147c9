"""The advance of the state by one closed minute."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import reduce

from rollouts.evaluation.clusters import ClusterSums, design_effect
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
from rollouts.evaluation.formula_1.counts import ArmCounts, MinuteCounts
from rollouts.evaluation.formula_1.policy import LATENCY_MARGIN, Metric
from rollouts.evaluation.formula_1.state import ArmTotals, MetricState, State
from rollouts.evaluation.grid import BINS_PER_MARGIN, Histogram
from rollouts.evaluation.learning import learned
from rollouts.evaluation.margin import margin_odds
from rollouts.evaluation.reference import Reference
from rollouts.evaluation.strata import with_events, with_values, with_weights


def advance(state: State, counts: MinuteCounts) -> State:
    """Returns the state after one more minute. Raises ValueError for a minute that is not after those already
    counted."""
    if (counts.minute, counts.stage) <= (state.last_minute, state.stage):
        raise ValueError(
            f"minute {counts.minute} of stage {counts.stage} does not follow {state.last_minute} of {state.stage}"
        )
    same_stage = counts.stage == state.stage
    return replace(
        state,
        metrics=_metrics(state, counts),
        latency=learned(state.latency, counts.target.latency, counts.baseline.latency),
        cost=learned(state.cost, counts.target.cost, counts.baseline.cost),
        minutes=state.minutes + 1,
        last_minute=counts.minute,
        stage=counts.stage,
        stage_requests=counts.target.requests + (state.stage_requests if same_stage else 0),
        sample_ratio=state.sample_ratio.advance(
            stage=counts.stage, weight=counts.weight, target=counts.target.units, baseline=counts.baseline.units
        ),
        target=_totals(state.target, counts.target),
        baseline=_totals(state.baseline, counts.baseline),
        target_weights=with_weights(state.target_weights, counts.target.latency, counts.baseline.latency),
        baseline_weights=with_weights(state.baseline_weights, counts.baseline.latency, counts.target.latency),
    )


def replay(state: State, minutes: Iterable[MinuteCounts]) -> State:
    """Returns the state after all of these minutes: the same as was stored, to the last digit."""
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


def _errors(state: State, target: ArmCounts, baseline: ArmCounts) -> MetricState:
    metric = state.metrics[Metric.ERROR_RATE]
    strata = with_events(
        metric.strata,
        events=target.errors,
        drawn=target.requests,
        others_events=baseline.errors,
        others=baseline.requests,
    )
    if not target.requests:
        return metric
    # The margin of a rate is at least one percentage point.
    rare = rare_factor(events=target.errors, requests=target.requests, rates=RARE_ERRORS)
    if not baseline.requests:
        # A target without a baseline beside it can only be compared with the absolute rate.
        return replace(metric, safe=added(metric.safe, (0.0, rare)))
    minute = {
        "events": target.errors,
        "drawn": target.requests,
        "all_events": target.errors + baseline.errors,
        "total": target.requests + baseline.requests,
    }
    # The margin comes from earlier minutes only, because one that knew this minute would not be fair.
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
    # The values of a target at the margin, divided by the margin, are as often slow as the baseline's.
    eased = _above(target, reference.slow_bin + BINS_PER_MARGIN)
    # If latencies hardly vary, nothing is slower than the 95th percentile, and odds have nothing to compare. A target
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
        strata=with_events(metric.strata, events=slow, drawn=drawn, others_events=theirs, others=others),
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
    strata = with_values(metric.strata, target, baseline)
    if reference is None:
        return replace(metric, strata=strata)
    return replace(
        metric,
        worse=added(metric.worse, tilt_factors(target, baseline, reference, divisor=allowance, upwards=True)),
        safe=added(metric.safe, tilt_factors(target, baseline, reference, divisor=margin, upwards=False)),
        strata=strata,
    )


def _totals(before: ArmTotals, counts: ArmCounts) -> ArmTotals:
    return ArmTotals(
        requests=before.requests + counts.requests,
        errors=before.errors + counts.errors,
        answered=before.answered + sum(counts.latency.values()),
        latency_ms=before.latency_ms + counts.latency_ms,
        priced=before.priced + sum(counts.cost.values()),
        cost_usd=before.cost_usd + counts.cost_usd,
    )
