"""Labels let a version pass only if they carry information, and roll it back only if they do not repeat the judge."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rollouts.evaluation import Action, from_json, to_json
from rollouts.evaluation.quality import (
    ArmTasks,
    Basis,
    Evaluator,
    EvaluatorTasks,
    QualityAssessment,
    QualityMinute,
    QualityState,
    Task,
    advance_quality,
    assess_quality,
    initial_quality,
)
from rollouts.evaluation.quality.assess import NotPassing

JUDGE = Evaluator("judge@1", Action.ROLL_BACK, required=True, label_share=0.2, margin_scale=None)
MINUTES = 150
RUNS = 8

Labeller = Callable[[random.Random, bool, float], float]
"""Says what a person makes of an answer that is good or not, and has this score."""


def honest(rng: random.Random, good: bool, score: float) -> float:
    return float(good)


def repeats(rng: random.Random, good: bool, score: float) -> float:
    return score


def says_yes(rng: random.Random, good: bool, score: float) -> float:
    return 1.0


def guesses(rng: random.Random, good: bool, score: float) -> float:
    return float(rng.random() < 0.5)


def begun(*, formula_3: bool = False) -> QualityState:
    state = initial_quality([JUDGE], weights=(50, 100), sticky=False)
    if not formula_3:
        return state
    stored = to_json(state)
    for one in stored["bases"][Basis.LABELS]["evaluators"].values():
        del one["told"]
    return from_json(QualityState, json.loads(json.dumps(stored)))


def ends(
    seed: int,
    labeller: Labeller,
    state: QualityState,
    *,
    loss: float = 0.0,
    likes: float = 0.0,
    usual: float = 0.9,
    agreed: bool = False,
) -> tuple[str, QualityAssessment]:
    """Returns how a rollout ends whose target loses so much, by a judge who calls such a share more of the target's bad
    answers good, or of its good ones bad if it is negative."""
    rng = random.Random(f"{seed} {labeller.__name__} {loss} {likes} {usual}")

    def task(is_target: bool) -> Task:
        good = rng.random() < usual - is_target * loss
        called = (0.9 + is_target * min(0.0, likes)) if good else 0.2 + is_target * max(0.0, likes)
        score = float(rng.random() < called)
        due = rng.random() < 0.2
        return Task(rng.getrandbits(48), score, due, labeller(rng, good, score) if due else None)

    for number in range(1, MINUTES + 1):
        target, baseline = (ArmTasks(tuple(task(is_target) for _ in range(10))) for is_target in (True, False))
        tasks = EvaluatorTasks(target, baseline, agreed=agreed or None)
        state = advance_quality(state, QualityMinute(number, 1, Basis.LABELS, {JUDGE.title: tasks}))
        found = assess_quality(state)
        if found.action is Action.ROLL_BACK or not found.required:
            return ("rolled back" if found.action else "passed"), found
    return "undecided", found


def count(ended: str, labeller: Labeller, *, formula_3: bool = False, **world: Any) -> int:
    runs = (ends(seed, labeller, begun(formula_3=formula_3), **world) for seed in range(RUNS))
    return [how for how, _ in runs].count(ended)


@pytest.mark.parametrize(("labeller", "likes"), [(says_yes, 0.0), (guesses, 0.0), (repeats, 0.7)])
def test_careless_labels__much_worse_target__never_pass(labeller: Labeller, likes: float) -> None:
    assert count("passed", labeller, loss=0.2, likes=likes) == 0
    # By formula 3, which took labels for the truth, they do.
    assert count("passed", labeller, loss=0.2, likes=likes, formula_3=True) > 0


@pytest.mark.parametrize("world", [{}, {"likes": -0.15}, {"usual": 0.97}])
def test_right_labels__equal_target__pass_as_they_did(world: dict[str, Any]) -> None:
    """Also where bad answers are rare."""
    before = count("passed", honest, formula_3=True, **world)
    assert count("passed", honest, **world) == before >= RUNS - 1


def test_right_labels__much_worse_target__roll_back_whatever_the_judge_likes() -> None:
    assert count("rolled back", honest, loss=0.2, likes=0.5) == RUNS


def test_labels_that_repeat_a_judge_who_dislikes_the_target__hold_and_do_not_roll_back() -> None:
    how, found = ends(1, repeats, begun(), likes=-0.3)
    assert (how, found.action) == ("undecided", Action.HOLD)


def test_labels__that_repeat_the_judge__pass_once_a_second_person_agrees() -> None:
    how, found = ends(1, repeats, begun())
    assert (how, found.evaluators[JUDGE.title].not_passing) == ("undecided", NotPassing.LABELS_UNRELIABLE)
    assert ends(1, repeats, begun(), agreed=True)[0] == "passed"


def test_second_opinions__that_agree_no_more__count_no_more() -> None:
    minute = QualityMinute(1, 1, Basis.LABELS, {JUDGE.title: EvaluatorTasks(agreed=True)})
    state = advance_quality(begun(), minute)
    untold = advance_quality(state, replace(minute, minute=2, evaluators={}))
    after = advance_quality(untold, replace(minute, minute=3, evaluators={JUDGE.title: EvaluatorTasks(agreed=False)}))
    told = [one.of(JUDGE.title).told for one in (state, untold, after)]
    assert [one and one.agreed for one in told] == [True, True, False]
