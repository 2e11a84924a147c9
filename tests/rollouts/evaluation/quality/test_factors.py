"""Every factor of the evaluators has a mean of at most 1 under its hypothesis: small blocks are counted out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rollouts.evaluation.quality import (
    Evaluator,
    Task,
)
from rollouts.evaluation.quality.blocks import cluster_sums, with_block, with_users
from rollouts.evaluation.quality.values import LabelSums, Prediction, reach, value_of
from tests.rollouts.evaluation.quality.counting import (
    EXACT,
    begun,
    draws,
    highest,
    of_users,
    task_at,
    unscored,
    user_at,
    worse,
)
from tests.rollouts.evaluation.quality.test_enumeration import pairs_of

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


def test_scores__equal_means_of_different_answers__worse_has_mean_at_most_1() -> None:
    """Half good everywhere against all or nothing: answers that only differ are not at fault."""
    target, baseline = [(1.0, Task(0, 0.5))], [(0.5, Task(0, 1.0)), (0.5, Task(0, 0.0))]

    before = begun(RAW)

    assert highest(before, pairs_of(before, RAW, target, baseline, pairs=3), worse) <= 1 + EXACT


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
