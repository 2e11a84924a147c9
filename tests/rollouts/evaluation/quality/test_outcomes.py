"""Outcomes in the evidence: counted out to the end in small blocks, and drawn by chance in whole A/B tests."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations_with_replacement

import pytest

from rollouts.evaluation import Action, from_json, to_json
from rollouts.evaluation.quality import (
    ArmTasks,
    Basis,
    Evaluator,
    EvaluatorTasks,
    QualityMinute,
    QualityState,
    Task,
    advance_quality,
    assess_quality,
    initial_quality,
)
from rollouts.evaluation.quality.assess import Goal
from rollouts.evaluation.quality.blocks import with_block
from rollouts.evaluation.quality.state import EvaluatorState
from tests.rollouts.evaluation.quality.counting import EXACT, begun, draws, highest, task_at, worse

GOAL = Evaluator("resolved", Action.ROLL_BACK, margin=0.05, is_outcome=True, goal=True)


def better(one: EvaluatorState) -> Sequence[float]:
    return one.better


@pytest.mark.parametrize("grid", [(0.0, 1.0), (0.0, 0.3, 1.0)])
@pytest.mark.parametrize("sticky", [False, True])
def test_block_of_outcomes__every_draw__no_bet_gains_on_average(grid: tuple[float, ...], sticky: bool) -> None:
    before = begun(GOAL, sticky=sticky)
    for scores in combinations_with_replacement(grid, 5):
        for drawn in (1, 2, 4):
            ways = draws([Task(0, score) for score in scores], drawn, task_at)
            after = [(chance, with_block(before, GOAL, own, rest, 0.5)) for chance, own, rest in ways]

            assert highest(before, after, worse) <= 1 + EXACT
            assert highest(before, after, better) <= 1 + EXACT


def state_after(target: float, baseline: float, minutes: int, *, seed: str, sticky: bool = False) -> QualityState:
    """Returns the state after minutes with five outcomes of each arm, of which so many are good."""
    rng = random.Random(seed)

    def arm(good: float) -> ArmTasks:
        return ArmTasks(tuple(Task(rng.getrandbits(48), float(rng.random() < good)) for _ in range(5)))

    state = initial_quality([GOAL], weights=(50,), sticky=sticky)
    for minute in range(1, minutes + 1):
        tasks = EvaluatorTasks(arm(target), arm(baseline))
        state = advance_quality(state, QualityMinute(minute, 1, Basis.OUTCOMES, {GOAL.title: tasks}))
    return state


def verdict(state: QualityState) -> Goal:
    goal = assess_quality(state).goal
    assert goal is not None
    return goal.verdict


def test_goal__whole_tests__have_the_right_verdict() -> None:
    gains = [verdict(state_after(0.7, 0.5, 200, seed=f"gain {number}")) for number in range(10)]
    losses = [verdict(state_after(0.4, 0.5, 200, seed=f"loss {number}")) for number in range(10)]

    assert gains == [Goal.BETTER] * 10
    assert losses == [Goal.NOT_BETTER] * 10


def test_goal__few_outcomes__undecided_and_stored_without_loss() -> None:
    state = state_after(0.5, 0.5, 5, seed="few", sticky=True)

    assert verdict(state) is Goal.UNDECIDED
    assert from_json(QualityState, to_json(state)) == state


def test_goal__harmless_and_looked_at_after_every_minute__better_in_few_tests() -> None:
    """One in twenty is promised at most: of 40 tests 6 or more have a chance of 1.4 %, were it exactly so many."""
    alarms = 0
    for number in range(40):
        rng, state = random.Random(f"harmless {number}"), initial_quality([GOAL], weights=(50,), sticky=False)
        for minute in range(1, 101):
            tasks = EvaluatorTasks(_even(rng), _even(rng))
            state = advance_quality(state, QualityMinute(minute, 1, Basis.OUTCOMES, {GOAL.title: tasks}))
            if verdict(state) is Goal.BETTER:
                alarms += 1
                break

    assert alarms <= 5


def _even(rng: random.Random) -> ArmTasks:
    return ArmTasks(tuple(Task(rng.getrandbits(48), float(rng.random() < 0.5)) for _ in range(10)))
