from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import reduce
from operator import sub
from typing import Any

from rollouts.evaluation.blocks import EMPTY, Block, without_unused_counts
from rollouts.evaluation.cohort import due_look, not_worse
from rollouts.evaluation.counts import ArmCounts, MinuteCounts, UserCounts, check_place, combined
from rollouts.evaluation.factors import judged
from rollouts.evaluation.one_user import block_design
from rollouts.evaluation.policy import KEPT_MINUTES, RATES, WARMING_REQUESTS, Metric
from rollouts.evaluation.prompt_cache import latencies, separates
from rollouts.evaluation.state import FIRST_SHARE, ArmTotals, MetricState, Served, State, alike
from rollouts.evaluation.statistics.clustering import design_of_arms
from rollouts.evaluation.statistics.learning import learned
from rollouts.evaluation.statistics.mixture import beginning
from rollouts.evaluation.statistics.strata import with_weights
from rollouts.evaluation.together import Together
from rollouts.evaluation.users import NOBODY, UserBlock, user_factors


def advance(state: State, counts: MinuteCounts) -> State:
    """Returns the state after one more minute of one stage. Late counts of an earlier stage follow in the minute in
    which they were recorded.

    Raises ValueError for counts that do not follow those already counted, or of an unknown stage.
    """
    last = state.last_minute, state.last_stage
    check_place(counts.minute, counts.stage, last=last, stages=len(state.weights))
    if counts.stage > state.stage:
        state = _entered(state, counts)
    if counts.clusters:
        state = _clustered(state, counts)
    if counts.cohort and counts.stage == state.stage:
        state = _looked(state, counts)
    compared = _rates_only(counts) if counts.settling or _is_cold(state, counts) else counts
    if counts.stage < state.stage:
        # Late counts are a block of their own: if the arms do not differ, their requests are late alike.
        late = Block(compared.target, compared.baseline)
        state = replace(state, **_judged(state, late, state.baseline, counts.stage))
    else:
        state = _current(state, compared)
    if state.sticky:
        state = _with_users(state, compared)
    return replace(
        state,
        minutes=state.minutes + 1,
        last_minute=counts.minute,
        last_stage=counts.stage,
        target_minute=counts.minute if _requests_of(counts.target) else state.target_minute,
        baseline_minute=counts.minute if _requests_of(counts.baseline) else state.baseline_minute,
        sample_ratio=state.sample_ratio.advance(
            stage=counts.stage, weight=counts.weight, target=counts.target.units, baseline=counts.baseline.units
        ),
        target=_totals(state.target, counts.target),
        baseline=_totals(state.baseline, counts.baseline),
        **(_served(state, counts) if counts.stage == state.stage else {}),
    )


def replay(state: State, minutes: Iterable[MinuteCounts]) -> State:
    return reduce(advance, minutes, state)


def _is_cold(state: State, counts: MinuteCounts) -> bool:
    """Returns whether an arm was idle so long that the provider's cache has forgotten its prompt, and gets too few
    requests now to fill it again. Neither says anything of the outcomes of its requests."""
    arms = ((state.target_minute, counts.target), (state.baseline_minute, counts.baseline))
    return any(counts.minute - last > KEPT_MINUTES and _requests_of(arm) < WARMING_REQUESTS for last, arm in arms)


def _requests_of(arm: ArmCounts) -> int:
    return arm.requests + arm.uncompared


def _rates_only(counts: MinuteCounts) -> MinuteCounts:
    """Removes latencies and costs, which are neither judged nor learned while a stage settles or an arm is cold.

    The block may continue afterwards, because each metric compares its own requests of both arms.
    """

    def of(arm: ArmCounts) -> ArmCounts:
        users = replace(arm.users, slow={}, latency={}, cost={})
        by_user = {metric: of_minute for metric, of_minute in arm.by_user.items() if metric in RATES}
        return replace(arm, latency={}, cost={}, latency_read={}, cost_read={}, users=users, by_user=by_user)

    return replace(counts, target=of(counts.target), baseline=of(counts.baseline))


def _entered(state: State, counts: MinuteCounts) -> State:
    stage = counts.stage
    state = _closed(state, state.block)
    if state.new_users != NOBODY:
        state = _users_judged(state, state.new_users)
    begin = {
        metric: beginning(state.weights, FIRST_SHARE[metric], after=state.stage, until=stage)
        for metric in state.metrics
    }
    return replace(
        state,
        stage=stage,
        stage_minute=counts.minute if state.formula > 3 else 0,
        looks=0,
        stage_target=Served(),
        stage_baseline=Served(),
        new_users=NOBODY,
        together=Together(),
        rise=state.rise.at_next_stage() if state.formula > 3 and state.stage else state.rise,
        metrics=alike({metric: one.with_process(begin[metric]) for metric, one in state.metrics.items()})
        if any(begin.values())
        else state.metrics,
    )


def _clustered(state: State, counts: MinuteCounts) -> State:
    metrics = dict(state.metrics)
    for metric, sums in counts.clusters.items():
        one = metrics[metric]
        design = design_of_arms(sums, counts.target_clusters.get(metric), one.variation)
        metrics[metric] = replace(one, next_design=design)
    return replace(state, metrics=metrics)


def _looked(state: State, counts: MinuteCounts) -> State:
    number = due_look(state, counts.minute)
    if number is None:
        return state
    arms = [counts.cohort.get(arm, UserCounts()) for arm in ("target", "baseline")]
    metrics = {metric: one.with_look(number, not_worse(state, metric, *arms)) for metric, one in state.metrics.items()}
    return replace(state, metrics=metrics, looks=number + 1)


def _current(state: State, counts: MinuteCounts) -> State:
    block = state.block.joined(counts)
    return _closed(state, block) if block.full else replace(state, block=without_unused_counts(block))


def _closed(state: State, block: Block) -> State:
    if block.empty:
        return state
    changes = _judged(state, block, _without(state.baseline, state.block.baseline), state.stage)
    if state.sticky:
        changes["metrics"] = {
            metric: replace(one, design=one.next_design) for metric, one in changes["metrics"].items()
        }
    return replace(state, block=EMPTY, **_together(state, block), **changes)


def _together(state: State, block: Block) -> dict[str, Any]:
    arms = (block.target, block.baseline)
    both = (
        sum([arm.requests + arm.uncompared for arm in arms]),
        sum([arm.unanswered + arm.uncompared_unanswered for arm in arms]),
        state.usual_share,
    )
    rise = {"rise": state.rise.with_block(*both)} if state.formula > 3 else {}
    return {"together": state.together.with_block(*both), **rise}


def _judged(state: State, block: Block, before: ArmTotals, stage: int) -> dict[str, Any]:
    target, baseline = block.target, block.baseline
    separate = separates(state.weights[stage - 1], sticky=state.sticky, formula=state.formula)
    target_weights, baseline_weights = state.target_weights, state.baseline_weights
    for own, theirs in latencies(target, baseline, separate=separate):
        target_weights = with_weights(target_weights, own, theirs)
        baseline_weights = with_weights(baseline_weights, theirs, own)
    if state.sticky:
        state = replace(state, metrics=_with_block_designs(state.metrics, block))
    return {
        "metrics": judged(state, target, baseline, before, separate=separate),
        "latency": learned(state.latency, target.latency, baseline.latency),
        "cost": learned(state.cost, target.cost, baseline.cost),
        "target_weights": target_weights,
        "baseline_weights": baseline_weights,
    }


def _with_block_designs(metrics: Mapping[Metric, MetricState], block: Block) -> Mapping[Metric, MetricState]:
    designs = {metric: block_design(block.target, block.baseline, metric) for metric in metrics}
    return {
        metric: one if one.block_design == designs[metric] else replace(one, block_design=designs[metric])
        for metric, one in metrics.items()
    }


def _with_users(state: State, counts: MinuteCounts) -> State:
    more = counts.target.users, counts.baseline.users
    if more == (UserCounts(), UserCounts()):
        return state
    if counts.stage < state.stage:
        return _users_judged(state, UserBlock(*more))
    block = state.new_users.joined(*more)
    if block.full:
        return replace(_users_judged(state, block), new_users=NOBODY)
    return replace(state, new_users=block)


def _users_judged(state: State, block: UserBlock) -> State:
    metrics = dict(state.metrics)
    for metric, one in metrics.items():
        reference = state.cost.reference if metric is Metric.COST else state.latency.reference
        allowance = 1 + state.policy.cost_allowance if metric is Metric.COST else 1.0
        factors = user_factors(block, metric, reference=reference, allowance=allowance)
        metrics[metric] = one.with_users(factors, state.waiting(metric))
    return replace(state, metrics=metrics)


def _without(totals: ArmTotals, block: ArmCounts) -> ArmTotals:
    """Removes an open block from the totals: the margin must not depend on the requests it is applied to."""
    return replace(totals, **combined(totals, block, sub)) if block is not EMPTY.baseline else totals


def _served(state: State, counts: MinuteCounts) -> dict[str, Any]:
    return {
        "stage_target": _more_served(state.stage_target, counts.target),
        "stage_baseline": _more_served(state.stage_baseline, counts.baseline),
    }


def _more_served(before: Served, counts: ArmCounts) -> Served:
    more, bad = counts.uncompared, counts.uncompared_unanswered
    return Served(
        before.requests + counts.requests + more,
        before.unanswered + counts.unanswered + bad,
        before.uncompared + more,
        before.uncompared_unanswered + bad,
    )


def _totals(before: ArmTotals, counts: ArmCounts) -> ArmTotals:
    return ArmTotals(
        **combined(before, counts),
        latency_ms=before.latency_ms + counts.latency_ms,
        priced=before.priced + sum(counts.cost.values()),
        cost_usd=before.cost_usd + counts.cost_usd,
        reasons=_reasons(before.reasons, counts.reasons),
        left_out=_reasons(before.left_out, counts.left_out),
    )


def _reasons(before: Mapping[str, int], more: Mapping[str, int]) -> Mapping[str, int]:
    if not more:
        return before
    return {reason: before.get(reason, 0) + more.get(reason, 0) for reason in sorted({*before, *more})}
