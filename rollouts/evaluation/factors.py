from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from rollouts.evaluation.counts import ArmCounts, events_of
from rollouts.evaluation.one_user import excess
from rollouts.evaluation.policy import LATENCY_MARGIN, RATES, Metric
from rollouts.evaluation.prompt_cache import costs, latencies
from rollouts.evaluation.state import ArmTotals, MetricState, State
from rollouts.evaluation.statistics.clustering import Variation
from rollouts.evaluation.statistics.evidence import (
    LOWER_ODDS,
    ODDS,
    RARE_ERRORS,
    RARELY_SLOW,
    odds_between,
    rare_factor,
    tilt_factors,
    tilt_factors_3,
)
from rollouts.evaluation.statistics.grid import Histogram, bins_of_factor
from rollouts.evaluation.statistics.margin import margin_odds
from rollouts.evaluation.statistics.reference import Reference
from rollouts.evaluation.statistics.strata import moments, with_events, with_values


def judged(
    state: State, target: ArmCounts, baseline: ArmCounts, before: ArmTotals, *, separate: bool = False
) -> Mapping[Metric, MetricState]:
    """With `separate`, latency and cost are compared among requests that are alike (see `prompt_cache`), each part as a
    block of its own."""
    latency, cost = state.latency.reference, state.cost.reference
    slow, average, dear = (state.metrics[one] for one in (Metric.LATENCY_P95, Metric.LATENCY_AVERAGE, Metric.COST))
    allowed, waiting = 1 + state.policy.cost_allowance, state.waiting(Metric.LATENCY_AVERAGE)
    tilted = tilt_factors_3 if state.formula == 3 else tilt_factors
    over, margin_bins = excess(target, baseline, Metric.LATENCY_P95), bins_of_factor(state.policy.latency_margin)
    for arms in latencies(target, baseline, separate=separate):
        slow = _slow(slow, arms, latency, state.waiting(Metric.LATENCY_P95), over, margin_bins)
        average = _means(average, arms, latency, (1.0, LATENCY_MARGIN), waiting, tilted)
    for arms in costs(target, baseline, separate=separate):
        dear = _means(dear, arms, cost, (allowed, state.policy.cost_margin), waiting, tilted)
    return {
        **_rates(state, target, baseline, before),
        Metric.LATENCY_P95: slow,
        Metric.LATENCY_AVERAGE: average,
        Metric.COST: dear,
    }


def _rates(state: State, target: ArmCounts, baseline: ArmCounts, before: ArmTotals) -> Mapping[Metric, MetricState]:
    waiting, found = state.waiting(Metric.UNANSWERED), {}
    quiet: dict[tuple[int, int, int, float | None], MetricState] = {}
    for metric in RATES:
        one, own, theirs = state.metrics[metric], events_of(target, metric), events_of(baseline, metric)
        points = state.policy.threshold(metric).margin
        if own[0] or theirs[0]:
            over = excess(target, baseline, metric)
            found[metric] = _rate(one, own, theirs, _margin(one, metric, before, points), waiting, over, points)
        else:
            # Most blocks have no event of most metrics, whose states are then one object (see `state.alike`).
            key = (id(one), own[1], theirs[1], points)
            found[metric] = quiet[key] = quiet.get(key) or _quiet(one, own[1], theirs[1], points)
    return found


def _rare(points: float | None) -> tuple[float, float]:
    """The margin of a rate is at least one percentage point, or a rollout's own points."""
    return RARE_ERRORS if points is None else (points / 10, points)


def _margin(one: MetricState, metric: Metric, before: ArmTotals, points: float | None) -> float | None:
    if one.answering is None:
        events, requests = events_of(before, metric)
        return margin_odds(errors=events, requests=requests, points=points)
    # Not from the totals: an hour in which both arms fail alike would make the margin far too wide for all other hours.
    return margin_odds(errors=one.answering.events, requests=one.answering.requests, points=points)


def _rate(
    metric: MetricState,
    target: tuple[int, int],
    baseline: tuple[int, int],
    margin: float | None,
    waiting: float,
    over: tuple[int, int],
    points: float | None = None,
) -> MetricState:
    """`target` and `baseline` are an arm's (events, requests); `over` are the events of either that do not count
    against the target (see `one_user`)."""
    (events, drawn), (others_events, others) = target, baseline
    answering = metric.answering and metric.answering.with_events(target, baseline)
    if not drawn:
        return replace(metric, answering=answering)
    # A time in which most of the baseline's requests have the event is no time to ask whether the target's are rare;
    # the choice depends on the baseline alone.
    spell = 2 * others_events > others > 0
    rare = 0.0 if spell else rare_factor(events=events, requests=drawn, rates=_rare(points))
    if not others:
        # A target without a baseline beside it can only be compared with the absolute rate.
        return metric.with_factors((0.0,) * len(ODDS), (0.0, rare), waiting)
    safe = 0.0 if margin is None else -odds_between(target, baseline, (margin,))[0]
    if safe > 0 and metric.answering and metric.answering.is_spell(target, baseline):
        # What fails for both alike makes their odds alike, whatever the target adds. That a spell may only speak
        # against the target lowers the mean of the factor.
        safe = 0.0
    return metric.with_factors(
        odds_between((events - over[0], drawn), (others_events - over[1], others)),
        (safe, rare),
        waiting,
        strata=with_events(metric.strata, target, baseline),
        answered_rates=metric.answered_rates.with_events(target, baseline),
        answering=answering,
        variation=_varied(metric, others, others_events),
    )


def _quiet(metric: MetricState, drawn: int, others: int, points: float | None) -> MetricState:
    answering = metric.answering and metric.answering.with_events((0, drawn), (0, others))
    if not drawn:
        return replace(metric, answering=answering)
    safe = metric.safe
    if metric.design is not None:
        rare = rare_factor(events=0, requests=drawn, rates=_rare(points))
        safe = (safe[0], safe[1] + rare / metric.design)
    return replace(
        metric,
        safe=safe,
        strata=with_events(metric.strata, (0, drawn), (0, others)),
        answered_rates=metric.answered_rates.with_events((0, drawn), (0, others)),
        answering=answering,
        variation=_varied(metric, others, 0),
    )


def _slow(
    metric: MetricState,
    arms: tuple[Histogram, Histogram],
    reference: Reference | None,
    waiting: float,
    over: tuple[int, int],
    margin_bins: int,
) -> MetricState:
    target, baseline = arms
    drawn, others = sum(target.values()), sum(baseline.values())
    if reference is None or not drawn or not others:
        return metric
    slow, theirs = _above(target, reference.slow_bin), _above(baseline, reference.slow_bin)
    # The values of a target at the margin, divided by the margin, are as often slow as the baseline's.
    eased = _above(target, reference.slow_bin + margin_bins)
    # If latencies hardly vary, nothing is slower than the 95th percentile, and odds have nothing to compare. A target
    # at the margin has one request in twenty at so many times that percentile or above.
    rare = rare_factor(events=_above(target, reference.slow_bin + margin_bins - 1), requests=drawn, rates=RARELY_SLOW)
    safe = odds_between((eased, drawn), (theirs, others), LOWER_ODDS)
    return metric.with_factors(
        odds_between((slow - over[0], drawn), (theirs - over[1], others)),
        (*safe, rare),
        waiting,
        strata=with_events(metric.strata, (slow, drawn), (theirs, others)),
        variation=_varied(metric, others, theirs),
    )


def _varied(metric: MetricState, requests: int, events: int) -> Variation:
    return metric.variation.with_block(requests, events, events) if metric.users else metric.variation


def _above(histogram: Histogram, bound: int) -> int:
    return sum([count for number, count in histogram.items() if number > bound])


def _means(
    metric: MetricState,
    arms: tuple[Histogram, Histogram],
    reference: Reference | None,
    divisors: tuple[float, float],
    waiting: float,
    factors: Callable[..., tuple[float, ...]],
) -> MetricState:
    """`arms` are the target's and the baseline's values. `divisors` apply to the target's: the first in the test for
    worse, the second in the test for safe."""
    target, baseline = arms
    if not target or not baseline:
        return metric
    strata = with_values(metric.strata, target, baseline)
    if reference is None:
        return replace(metric, strata=strata)
    allowance, margin = divisors
    variation = metric.variation
    if metric.users:
        variation = variation.with_block(*moments(baseline, reference.cap))
    return metric.with_factors(
        factors(target, baseline, reference, divisor=allowance, upwards=True),
        factors(target, baseline, reference, divisor=margin, upwards=False),
        waiting,
        strata=strata,
        variation=variation,
    )
