"""The factors of one block: what it adds to the evidence of every metric."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rollouts.evaluation.counts import ArmCounts, events_of
from rollouts.evaluation.one_user import excess
from rollouts.evaluation.policy import LATENCY_MARGIN, RATES, Metric
from rollouts.evaluation.state import ArmTotals, MetricState, State
from rollouts.evaluation.statistics.evidence import (
    LOWER_ODDS,
    ODDS,
    RARE_ERRORS,
    RARELY_SLOW,
    odds_factors,
    rare_factor,
    tilt_factors,
)
from rollouts.evaluation.statistics.grid import BINS_PER_MARGIN, Histogram
from rollouts.evaluation.statistics.margin import margin_odds
from rollouts.evaluation.statistics.mixture import evidence
from rollouts.evaluation.statistics.reference import Reference
from rollouts.evaluation.statistics.strata import Strata, moments, with_events, with_values


def judged(state: State, target: ArmCounts, baseline: ArmCounts, before: ArmTotals) -> Mapping[Metric, MetricState]:
    """Returns the metrics after a block with these counts of both arms. `before` holds the baseline's totals before the
    block."""
    metrics, latency, cost = state.metrics, state.latency.reference, state.cost.reference
    allowed, waiting = 1 + state.policy.cost_allowance, state.waiting(Metric.LATENCY_AVERAGE)
    return {
        **_rates(state, target, baseline, before),
        Metric.LATENCY_P95: _slow(
            metrics[Metric.LATENCY_P95],
            (target.latency, baseline.latency),
            latency,
            state.waiting(Metric.LATENCY_P95),
            excess(target, baseline, Metric.LATENCY_P95),
        ),
        Metric.LATENCY_AVERAGE: _means(
            metrics[Metric.LATENCY_AVERAGE],
            (target.latency, baseline.latency),
            latency,
            (1.0, LATENCY_MARGIN),
            waiting,
        ),
        Metric.COST: _means(
            metrics[Metric.COST], (target.cost, baseline.cost), cost, (allowed, state.policy.cost_margin), waiting
        ),
    }


def _rates(state: State, target: ArmCounts, baseline: ArmCounts, before: ArmTotals) -> Mapping[Metric, MetricState]:
    waiting, found = state.waiting(Metric.UNANSWERED), {}
    quiet: dict[tuple[int, int, int], MetricState] = {}
    for metric in RATES:
        one, own, theirs = state.metrics[metric], events_of(target, metric), events_of(baseline, metric)
        if own[0] or theirs[0]:
            events, requests = events_of(before, metric)
            margin, over = margin_odds(errors=events, requests=requests), excess(target, baseline, metric)
            found[metric] = _rate(one, own, theirs, margin, waiting, over)
        else:
            # Most blocks have no event of most metrics, whose states are then one object (see `state.alike`).
            key = (id(one), own[1], theirs[1])
            found[metric] = quiet[key] = quiet.get(key) or _quiet(one, own[1], theirs[1])
    return found


def _weighed(
    metric: MetricState, strata: Strata, worse: tuple[float, ...], safe: tuple[float, ...], waiting: float
) -> MetricState:
    """Returns the metric with the factors of one more block and with `strata`. Each factor is raised to the power 1/D,
    which keeps its mean at most 1."""
    if metric.design is None:
        return replace(metric, strata=strata)
    design = max(metric.design, metric.block_design)
    summed = tuple([log + factor / design for log, factor in zip(metric.worse, worse, strict=True)])
    found = evidence(summed, waiting)
    return MetricState(
        worse=summed,
        safe=tuple([log + factor / design for log, factor in zip(metric.safe, safe, strict=True)]),
        evidence=found,
        peak=max(metric.peak, found),
        design=metric.design,
        next_design=metric.next_design,
        strata=strata,
        answered_rates=metric.answered_rates,
        variation=metric.variation,
        users=metric.users,
        block_design=metric.block_design,
    )


def _rate(
    metric: MetricState,
    target: tuple[int, int],
    baseline: tuple[int, int],
    margin: float | None,
    waiting: float,
    over: tuple[int, int],
) -> MetricState:
    """Returns a rate metric after a block. `target` and `baseline` are the events and the requests of an arm, `over`
    the events of either that do not count against the target (see `one_user`)."""
    (events, drawn), (others_events, others) = target, baseline
    if not drawn:
        return metric
    # The margin of a rate is at least one percentage point. A time in which most of the baseline's requests have the
    # event is no time to ask whether the target's are rare; the choice depends on the baseline alone.
    spell = 2 * others_events > others > 0
    rare = 0.0 if spell else rare_factor(events=events, requests=drawn, rates=RARE_ERRORS)
    if not others:
        # A target without a baseline beside it can only be compared with the absolute rate.
        return _weighed(metric, metric.strata, (0.0,) * len(ODDS), (0.0, rare), waiting)
    all_events, total = events + others_events, drawn + others
    safe = 0.0
    if margin is not None:
        safe = -odds_factors(events=events, drawn=drawn, all_events=all_events, total=total, odds=(margin,))[0]
    capped = {"events": events - over[0], "all_events": all_events - sum(over)}
    worse = odds_factors(**capped, drawn=drawn, total=total, odds=ODDS)
    counts = {"events": events, "drawn": drawn, "others_events": others_events, "others": others}
    metric = replace(_varied(metric, others, others_events), answered_rates=metric.answered_rates.with_events(**counts))
    return _weighed(metric, with_events(metric.strata, **counts), worse, (safe, rare), waiting)


def _quiet(metric: MetricState, drawn: int, others: int) -> MetricState:
    """Returns a rate metric after a block in which neither arm has an event: only its rarity says anything."""
    if not drawn:
        return metric
    strata, answered_rates, safe = metric.strata, metric.answered_rates, metric.safe
    if others:
        counts = {"events": 0, "drawn": drawn, "others_events": 0, "others": others}
        strata, answered_rates = with_events(strata, **counts), answered_rates.with_events(**counts)
    if metric.design is not None:
        rare = rare_factor(events=0, requests=drawn, rates=RARE_ERRORS)
        safe = (safe[0], safe[1] + rare / metric.design)
    return MetricState(
        worse=metric.worse,
        safe=safe,
        evidence=metric.evidence,
        peak=metric.peak,
        design=metric.design,
        next_design=metric.next_design,
        strata=strata,
        answered_rates=answered_rates,
        variation=_varied(metric, others, 0).variation,
        users=metric.users,
        block_design=metric.block_design,
    )


def _slow(
    metric: MetricState,
    arms: tuple[Histogram, Histogram],
    reference: Reference | None,
    waiting: float,
    over: tuple[int, int],
) -> MetricState:
    target, baseline = arms
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
    capped = {"events": slow - over[0], "all_events": slow + theirs - sum(over)}
    worse = odds_factors(**capped, drawn=drawn, total=total, odds=ODDS)
    safe = odds_factors(events=eased, drawn=drawn, all_events=eased + theirs, total=total, odds=LOWER_ODDS)
    strata = with_events(metric.strata, events=slow, drawn=drawn, others_events=theirs, others=others)
    metric = _varied(metric, others, theirs)
    return _weighed(metric, strata, worse, (*safe, rare), waiting)


def _varied(metric: MetricState, requests: int, events: int) -> MetricState:
    """Returns the metric with the variation of one more block of the baseline, which only sticky allocation needs."""
    if not metric.users:
        return metric
    return replace(metric, variation=metric.variation.with_block(requests, events, events))


def _above(histogram: Histogram, bound: int) -> int:
    return sum([count for number, count in histogram.items() if number > bound])


def _means(
    metric: MetricState,
    arms: tuple[Histogram, Histogram],
    reference: Reference | None,
    divisors: tuple[float, float],
    waiting: float,
) -> MetricState:
    """Returns a metric of means after a block. `arms` are the target's and the baseline's values. `divisors` are
    applied to the target's values: the first in the test for worse, the second in the test for safe."""
    target, baseline = arms
    if not target or not baseline:
        return metric
    strata = with_values(metric.strata, target, baseline)
    if reference is None:
        return replace(metric, strata=strata)
    allowance, margin = divisors
    if metric.users:
        metric = replace(metric, variation=metric.variation.with_block(*moments(baseline, reference.cap)))
    return _weighed(
        metric,
        strata,
        tilt_factors(target, baseline, reference, divisor=allowance, upwards=True),
        tilt_factors(target, baseline, reference, divisor=margin, upwards=False),
        waiting,
    )
