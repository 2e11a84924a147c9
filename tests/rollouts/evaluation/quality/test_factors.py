"""Every factor of the evaluators has a mean of at most 1 under its hypothesis: small blocks are counted out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollouts.evaluation.quality import (
    ArmTasks,
    Basis,
    Evaluator,
    EvaluatorTasks,
    QualityMinute,
    QualityState,
    Task,
    advance_quality,
    initial_quality,
)
from rollouts.evaluation.quality.blocks import cluster_sums, with_block, with_users
from rollouts.evaluation.quality.state import EvaluatorState
from rollouts.evaluation.quality.values import LabelSums, Prediction, reach, value_of
from tests.rollouts.evaluation.quality.counting import (
    EXACT,
    WEIGHTS,
    begun,
    draws,
    highest,
    of_users,
    safe,
    task_at,
    unscored,
    user_at,
    worse,
)

SCORES = st.none() | st.sampled_from([0.0, 0.25, 1.0]) | st.floats(0, 1)
TASKS = st.lists(
    st.builds(
        Task, order=st.integers(0, 9), score=SCORES, label_due=st.booleans(), label=SCORES, user=st.integers(0, 2)
    ),
    min_size=2,
    max_size=4,
)
RAW, LABELLED = Evaluator("raw"), Evaluator("labelled", label_share=0.25)


@given(tasks=TASKS, data=st.data(), rule=st.sampled_from([RAW, LABELLED]), sticky=st.booleans())
def test_block__every_draw_of_the_targets_tasks__has_mean_at_most_1(
    tasks: list[Task], data: st.DataObject, rule: Evaluator, sticky: bool
) -> None:
    """Scores and labels may be missing in any way: without a difference they are missing in both arms alike. With
    sticky allocation the block counts for its design effect less, which depends on its own users."""
    drawn, before = data.draw(st.integers(1, len(tasks) - 1)), begun(rule, sticky=sticky)
    after = [(chance, with_block(before, rule, own, rest, 0.5)) for chance, own, rest in draws(tasks, drawn, task_at)]

    assert highest(before, after, worse) <= 1 + EXACT
    assert highest(before, after, unscored) <= 1 + EXACT


@given(data=st.data(), rule=st.sampled_from([RAW, LABELLED]), number=st.integers(2, 4))
def test_users__every_draw_of_the_targets_users__has_mean_at_most_1(
    data: st.DataObject, rule: Evaluator, number: int
) -> None:
    users = [
        tuple(data.draw(st.lists(TASKS.map(lambda tasks: tasks[0]), min_size=5, max_size=5))) for _ in range(number)
    ]
    drawn, before = data.draw(st.integers(1, number - 1)), begun(rule, sticky=True)
    after = [(chance, with_users(before, rule, own, rest, 0.5)) for chance, own, rest in draws(users, drawn, user_at)]

    assert highest(before, after, of_users) <= 1 + EXACT
    assert highest(before, after, unscored) <= 1 + EXACT


JUDGED = [(score, label) for score in (0.0, 1.0) for label in (0.0, 1.0)]
"""What a judge and a person may say of one answer."""


def confusion(good: float, sensitivity: float, specificity: float) -> dict[tuple[float, float], float]:
    return {
        (1.0, 1.0): good * sensitivity,
        (0.0, 1.0): good * (1 - sensitivity),
        (0.0, 0.0): (1 - good) * specificity,
        (1.0, 0.0): (1 - good) * (1 - specificity),
    }


def labelled_tasks(
    chances: dict[tuple[float, float], float], share: float, *, hidden_labels: frozenset[float] = frozenset()
) -> list[tuple[float, Task]]:
    """Returns the tasks of one arm with their chances. Labels of `hidden_labels` are never written down."""
    found = []
    for (score, label), chance in chances.items():
        found.append((chance * (1 - share), Task(0, score)))
        found.append((chance * share, Task(0, score, label_due=True, label=None if label in hidden_labels else label)))
    return found


def blocks_of(
    rule: Evaluator, target: list[tuple[float, Task]], baseline: list[tuple[float, Task]], pairs: int = 1
) -> tuple[EvaluatorState, list[tuple[float, EvaluatorState]]]:
    before, after = begun(rule), []
    for drawn in product(product(target, baseline), repeat=pairs):
        chance = math.prod(own[0] * other[0] for own, other in drawn)
        if chance:
            own, rest = ([replace(pair[arm][1], order=place) for place, pair in enumerate(drawn)] for arm in (0, 1))
            after.append((chance, with_block(before, rule, own, rest, 0.5)))
    return before, after


@pytest.mark.parametrize("judge", [(0.5, 0.5), (0.9, 0.8), (0.2, 1.0), (0.0, 0.0)])
@pytest.mark.parametrize("hidden", [frozenset(), frozenset({0.0}), frozenset({1.0}), frozenset({0.0, 1.0})])
def test_labels__judge_that_dislikes_the_target__has_mean_at_most_1(
    judge: tuple[float, float], hidden: frozenset[float]
) -> None:
    """The arms are equal by labels, and the judge of the target's answers is any judge. Labels of one kind may be
    missing."""
    share = 0.25
    target = labelled_tasks(confusion(0.7, *judge), share, hidden_labels=hidden)
    baseline = labelled_tasks(confusion(0.7, 0.9, 0.8), share)

    assert highest(*blocks_of(LABELLED, target, baseline), worse) <= 1 + EXACT


@pytest.mark.parametrize("judge", [(0.5, 0.5), (0.9, 0.8), (1.0, 0.0)])
@pytest.mark.parametrize("hidden", [frozenset(), frozenset({0.0}), frozenset({1.0}), frozenset({0.0, 1.0})])
def test_labels__target_lower_by_the_margin__not_worse_has_mean_at_most_1(
    judge: tuple[float, float], hidden: frozenset[float]
) -> None:
    target = labelled_tasks(confusion(0.6, *judge), 0.25, hidden_labels=hidden)
    baseline = labelled_tasks(confusion(0.7, 0.9, 0.8), 0.25)

    assert highest(*blocks_of(LABELLED, target, baseline), safe) <= 1 + EXACT


@pytest.mark.parametrize("hides", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("scale", [1.0, 0.7, 0.4])
def test_scores__target_lower_by_the_margin_and_bad_answers_missing__not_worse_has_mean_at_most_1(
    hides: float, scale: float
) -> None:
    """A judge that shows 0.7 of a loss, with a margin that is scaled by as much or by more than that: a scale above it
    is what the lower limit of the calibration is to prevent."""
    rule = Evaluator("raw", margin_scale=min(scale, 0.7))
    scores = [confusion(good, 0.9, 0.8) for good in (0.6, 0.7)]
    good = [arm[1.0, 1.0] + arm[1.0, 0.0] for arm in scores]
    target = [(good[0], Task(0, 1.0)), ((1 - good[0]) * (1 - hides), Task(0, 0.0)), ((1 - good[0]) * hides, Task(0))]
    baseline = [(good[1] * (1 - hides), Task(0, 1.0)), (good[1] * hides, Task(0)), (1 - good[1], Task(0, 0.0))]

    assert highest(*blocks_of(rule, target, baseline), safe) <= 1 + EXACT
    assert highest(*blocks_of(rule, target, baseline, pairs=2), safe) <= 1 + EXACT


def test_scores__equal_means_of_different_answers__worse_has_mean_at_most_1() -> None:
    """Half good everywhere against all or nothing: answers that only differ are not at fault."""
    target, baseline = [(1.0, Task(0, 0.5))], [(0.5, Task(0, 1.0)), (0.5, Task(0, 0.0))]

    assert highest(*blocks_of(RAW, target, baseline, pairs=3), worse) <= 1 + EXACT


def test_several_evaluators__each_course_of_two_blocks__mean_over_all_at_most_1() -> None:
    """Three evaluators of the same answers with other hashes and other gaps; the labels of the arms are drawn in both
    blocks, and the mean of the three e-values is taken over all of it."""
    answers = [(1.0, 0), (0.0, 1), (1.0, 2), (0.0, 3)]
    rules = [Evaluator("a"), Evaluator("b"), Evaluator("c")]
    before = initial_quality(rules, weights=WEIGHTS, sticky=False)

    def tasks(places: Sequence[tuple[float, int]], shift: int, gap: int) -> ArmTasks:
        return ArmTasks(
            tuple(
                Task(order, None if number == gap else abs(score - (shift == 1)))
                for order, (score, number) in enumerate(places)
            )
        )

    def after(state: QualityState, stage: int, way: Sequence[tuple[float, int]]) -> QualityState:
        # Each evaluator has hashes of its own, which turn its tasks round within each arm.
        found = {
            rule.title: EvaluatorTasks(
                tasks(turned(way[:2], shift), shift, gap=shift), tasks(turned(way[2:], shift * stage), shift, gap=shift)
            )
            for shift, rule in enumerate(rules)
        }
        # The next stage closes the block of the one before.
        state = advance_quality(state, QualityMinute(stage, stage, Basis.SCORES, found))
        return advance_quality(state, QualityMinute(stage, stage + 1, Basis.SCORES))

    total, number = 0.0, 0
    for first, second in product(permutations(answers), repeat=2):
        state = after(after(before, 1, first), 2, second)
        total += sum(math.exp(state.of(rule.title).evidence) for rule in rules) / len(rules)
        number += 1

    assert number == 24**2
    assert total / number <= 1 + EXACT


def turned(way: Sequence[tuple[float, int]], by: int) -> Sequence[tuple[float, int]]:
    return [*way[by % 2 :], *way[: by % 2]]


@given(tasks=TASKS, share=st.floats(0.01, 1), sums=st.builds(LabelSums, st.integers(20, 99), *[st.floats(0, 20)] * 4))
def test_reach__any_task_and_prediction__is_never_exceeded(tasks: list[Task], share: float, sums: LabelSums) -> None:
    rule = Evaluator("labelled", label_share=share)
    prediction: Prediction = sums.prediction
    values = [value_of(task, rule, prediction) for task in tasks]

    most = max(one.high for one in values) - min(one.low for one in values)
    assert most <= reach(rule, prediction)


def test_cluster_sums__users__as_they_are_defined() -> None:
    found = cluster_sums([[1.0, 0.0], [0.5]])

    assert (found.requests, found.requests_squared, found.total, found.total_squared) == (3.0, 5.0, 1.5, 1.25)
    assert (found.cross, found.values_squared) == (2.5, 1.25)
