from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import reduce

from rollouts.evaluation.counts import check_place
from rollouts.evaluation.quality.blocks import with_block, with_users
from rollouts.evaluation.quality.clustering import NO_USERS, design_of_both, design_of_tasks
from rollouts.evaluation.quality.counts import ArmTasks, EvaluatorTasks, QualityMinute
from rollouts.evaluation.quality.rules import FIRST_SHARE, Basis, Evaluator
from rollouts.evaluation.quality.state import BasisState, EvaluatorState, QualityState
from rollouts.evaluation.statistics.mixture import beginning
from rollouts.evaluation.users import FIRST_REQUESTS, MIN_USERS

MIN_TASKS = 20
"""A block closes when both arms together hold so many tasks of an evaluator. How they ended has no part in it."""

EVEN_WEIGHT = 50
"""The weight in percent of a stage in which users are compared."""

_NO_TASKS = EvaluatorTasks()


def advance_quality(state: QualityState, minute: QualityMinute) -> QualityState:
    """Returns the state after one more minute of one stage. Late requests of an earlier stage follow in the minute in
    which they were recorded.

    Raises ValueError for a minute that does not follow those of the same basis, for an unknown stage or evaluator, or
    for a score or label outside of 0 to 1.
    """
    before = state.bases.get(minute.basis)
    if before is None:
        raise ValueError(f"basis: the rollout has no evaluator that rests on {minute.basis.value}")
    _check(state, before, minute)
    if minute.stage > before.stage:
        state = _entered(state, minute.basis, minute.stage)
    basis = state.bases[minute.basis]
    tasks = {title: minute.evaluators.get(title, _NO_TASKS) for title in basis.evaluators}
    place = {"last_minute": minute.minute, "last_stage": minute.stage}
    state = _each(state, minute.basis, lambda rule, one: _joined(one, tasks[rule.title]), **place)
    if minute.stage < basis.stage:
        # Late tasks are a block of their own: if the arms do not differ, their requests are late alike.
        return _judged_late(state, minute.basis, minute.stage, tasks)
    even = _is_even(state, minute.stage)
    state = _each(state, minute.basis, lambda rule, one: _opened(one, tasks[rule.title], even))
    return _closed_if_full(state, minute.basis)


def replay_quality(state: QualityState, minutes: Iterable[QualityMinute]) -> QualityState:
    return reduce(advance_quality, minutes, state)


def _check(state: QualityState, basis: BasisState, minute: QualityMinute) -> None:
    last = basis.last_minute, basis.last_stage
    check_place(minute.minute, minute.stage, last=last, stages=len(state.weights))
    if unknown := sorted(set(minute.evaluators) - set(basis.evaluators)):
        raise ValueError(f"evaluators: {unknown[0]} is none of the rollout's that rest on {minute.basis.value}")
    for title, tasks in minute.evaluators.items():
        _check_tasks(title, tasks.target)
        _check_tasks(title, tasks.baseline)


def _check_tasks(title: str, arm: ArmTasks) -> None:
    if any(len(user) != FIRST_REQUESTS for user in arm.users):
        raise ValueError(f"users: one of {title} does not have {FIRST_REQUESTS} tasks")
    for task in (*arm.tasks, *(task for user in arm.users for task in user)):
        for name, value in (("score", task.score), ("label", task.label)):
            if value is not None and not 0 <= value <= 1:
                raise ValueError(f"{name}: {value} of {title} is not between 0 and 1")


def _each(
    state: QualityState,
    basis: Basis,
    change: Callable[[Evaluator, EvaluatorState], EvaluatorState],
    **changes: int,
) -> QualityState:
    before = state.bases[basis]
    evaluators = {
        title: one if one.drifted else change(state.rule(title), one) for title, one in before.evaluators.items()
    }
    return replace(state, bases={**state.bases, basis: replace(before, evaluators=evaluators, **changes)})


def _entered(state: QualityState, basis: Basis, stage: int) -> QualityState:
    state = _users_closed(_closed(state, basis), basis)
    weight = beginning(state.weights, FIRST_SHARE, after=state.bases[basis].stage, until=stage)
    return _each(state, basis, lambda _, one: one.with_process(weight), stage=stage)


def _joined(one: EvaluatorState, tasks: EvaluatorTasks) -> EvaluatorState:
    if tasks.drifted:
        return replace(one, drifted=True)
    if tasks.agreed is not None and one.told is not None:
        one = replace(one, told=replace(one.told, agreed=tasks.agreed))
    if tasks.baseline.clusters is None:
        return one
    arms = tasks.baseline.clusters, tasks.target.clusters or NO_USERS
    return replace(
        one,
        next_design=design_of_tasks(*arms, one.variation),
        common_design=design_of_both(*arms, one.variation),
    )


def _is_even(state: QualityState, stage: int) -> bool:
    """Returns whether a stage's users may be compared: whether both arms have the same share of their tasks due.

    Matched sampling takes as many tasks of the larger arm as of the smaller one. Elsewhere only its busiest users ever
    have five, and busy users may differ.
    """
    return state.weights[stage - 1] == EVEN_WEIGHT


def _opened(one: EvaluatorState, tasks: EvaluatorTasks, even: bool) -> EvaluatorState:
    users = (tasks.target.users, tasks.baseline.users) if even else ((), ())
    return replace(
        one,
        open_target=(*one.open_target, *tasks.target.tasks),
        open_baseline=(*one.open_baseline, *tasks.baseline.tasks),
        open_target_users=(*one.open_target_users, *users[0]),
        open_baseline_users=(*one.open_baseline_users, *users[1]),
    )


def _closed_if_full(state: QualityState, basis: Basis) -> QualityState:
    evaluators = state.bases[basis].evaluators.values()
    if any(len(one.open_target) + len(one.open_baseline) >= MIN_TASKS for one in evaluators):
        state = _closed(state, basis)
    if any(len(one.open_target_users) + len(one.open_baseline_users) >= MIN_USERS for one in evaluators):
        state = _users_closed(state, basis)
    return state


def _closed(state: QualityState, basis: Basis) -> QualityState:
    waiting = state.waiting(basis)

    def close(rule: Evaluator, one: EvaluatorState) -> EvaluatorState:
        judged = with_block(one, rule, one.open_target, one.open_baseline, waiting)
        return replace(judged, design=judged.next_design, open_target=(), open_baseline=())

    return _each(state, basis, close)


def _users_closed(state: QualityState, basis: Basis) -> QualityState:
    waiting = state.waiting(basis)

    def close(rule: Evaluator, one: EvaluatorState) -> EvaluatorState:
        judged = with_users(one, rule, one.open_target_users, one.open_baseline_users, waiting)
        return replace(judged, open_target_users=(), open_baseline_users=())

    return _each(state, basis, close)


def _judged_late(state: QualityState, basis: Basis, stage: int, tasks: Mapping[str, EvaluatorTasks]) -> QualityState:
    waiting, even = state.waiting(basis), _is_even(state, stage)

    def judge(rule: Evaluator, one: EvaluatorState) -> EvaluatorState:
        target, baseline = tasks[rule.title].target, tasks[rule.title].baseline
        judged = with_block(one, rule, target.tasks, baseline.tasks, waiting)
        return with_users(judged, rule, target.users, baseline.users, waiting) if even else judged

    return _each(state, basis, judge)
