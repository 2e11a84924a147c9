"""Small blocks counted out to the end: every choice of the target's tasks, and every outcome of a small grid.

Hypothesis chooses the shapes: how many tasks, which grid, which evaluator, what earlier labels said, and of tests in
which the arms differ the chances of each outcome. Under its hypothesis each factor has a mean of at most 1, by every
stake. Each kind of count is also made of a factor that is wrong, which it has to find.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations_with_replacement, permutations, product

from hypothesis import given, settings
from hypothesis import strategies as st

from rollouts.evaluation.quality import (
    ArmTasks,
    Evaluator,
    EvaluatorTasks,
    QualityMinute,
    QualityState,
    Task,
    advance_quality,
    assess_quality,
    initial_quality,
)
from rollouts.evaluation.quality.blocks import with_block, with_users
from rollouts.evaluation.quality.counts import UserTasks
from rollouts.evaluation.quality.rules import FIRST_SHARE
from rollouts.evaluation.quality.state import EvaluatorState
from rollouts.evaluation.quality.values import LabelSums
from tests.night import examples
from tests.rollouts.evaluation.quality.counting import (
    EXACT,
    LEARNED,
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

SHAPES = settings(max_examples=examples(15, 60), deadline=None)
FEW_SHAPES = settings(max_examples=4, deadline=None)
CLEARLY = 1e-3
"""How far above 1 the mean of a wrong factor is."""

RAW = Evaluator("raw")
RULES = st.sampled_from([RAW, *(Evaluator("labelled", label_share=share) for share in (0.05, 0.2, 0.5, 1.0))])
PERVERSE = LabelSums(40, 20.0, 20.0, 15.0, 5.0)
"""The labels of a judge who calls bad answers good."""
HISTORIES = st.sampled_from([LabelSums(), LEARNED, PERVERSE])

SCORES = (None, 0.0, 0.4, 1.0)
LABELS = ((False, None), (True, None), (True, 0.0), (True, 1.0))
GRID = [Task(0, score, due, label) for score in SCORES for due, label in LABELS]


def grids(most: int) -> st.SearchStrategy[list[Task]]:
    return st.lists(st.sampled_from(GRID), min_size=2, max_size=most, unique=True)


def all_blocks(
    before: EvaluatorState, rule: Evaluator, tasks: Sequence[Task], drawn: int
) -> Iterator[tuple[float, EvaluatorState]]:
    for chance, own, rest in draws(tasks, drawn, task_at):
        yield chance, with_block(before, rule, own, rest, 0.5)


@SHAPES
@given(grid=grids(4), number=st.integers(2, 4), data=st.data(), rule=RULES, labels=HISTORIES)
def test_block__every_outcome_and_every_draw__has_mean_at_most_1(
    grid: list[Task], number: int, data: st.DataObject, rule: Evaluator, labels: LabelSums
) -> None:
    """Nothing tells the arms apart but chance. Scores and labels may be missing in any way."""
    drawn, before = data.draw(st.integers(1, number - 1)), begun(rule, labels=labels)
    for tasks in combinations_with_replacement(grid, number):
        after = list(all_blocks(before, rule, tasks, drawn))

        assert highest(before, after, worse) <= 1 + EXACT
        assert highest(before, after, unscored) <= 1 + EXACT


FIVE: Sequence[UserTasks] = [
    tuple(Task(0, score, due, label) for score, due, label in five)
    for five in (
        [(1.0, False, None)] * 5,
        [(0.0, False, None)] * 5,
        [(None, False, None)] * 5,
        [(0.0, True, 1.0)] * 2 + [(1.0, False, None)] * 3,
        [(1.0, True, 0.0), (None, True, 0.0), (0.4, True, None), (0.4, False, None), (None, False, None)],
    )
]
"""Users of sticky allocation: who always get good answers or bad ones, whose answers have no scores, with whom the
judge is wrong, and one with something of everything."""


@SHAPES
@given(
    grid=st.lists(st.sampled_from(FIVE), min_size=2, max_size=3, unique=True),
    number=st.integers(2, 4),
    data=st.data(),
    rule=RULES,
    labels=HISTORIES,
)
def test_users__every_outcome_and_every_draw__has_mean_at_most_1(
    grid: list[UserTasks], number: int, data: st.DataObject, rule: Evaluator, labels: LabelSums
) -> None:
    """Each user is in one arm with all of their tasks, which may resemble each other as they like."""
    drawn, before = data.draw(st.integers(1, number - 1)), begun(rule, sticky=True, labels=labels)
    for users in combinations_with_replacement(grid, number):
        ways = draws(users, drawn, user_at)
        after = [(chance, with_users(before, rule, own, rest, 0.5)) for chance, own, rest in ways]

        assert highest(before, after, of_users) <= 1 + EXACT
        assert highest(before, after, unscored) <= 1 + EXACT


def test_control__tasks_of_one_user_taken_for_independent__are_found() -> None:
    """Two users, one of whom gets bad answers from any version."""
    users = [tuple(Task(0, score) for _ in range(3)) for score in (0.0, 1.0)]
    before = begun(RAW)
    after = [(chance, with_block(before, RAW, own[0], rest[0], 0.5)) for chance, own, rest in draws(users, 1, user_at)]

    assert highest(before, after, worse) > 1 + CLEARLY


def test_control__pairs_in_an_order_that_knows_the_scores__are_found() -> None:
    """The target's worst answer beside the baseline's best one, as an order of scores would have it."""
    before = begun(RAW)

    def by_score(tasks: Sequence[Task], worst_first: bool) -> list[Task]:
        known = sorted(tasks, key=lambda task: task.score or 0.0, reverse=not worst_first)
        return [replace(task, order=order) for order, task in enumerate(known)]

    tasks = [Task(0, score) for score in (0.0, 0.0, 1.0, 1.0, 1.0)]
    after = [
        (chance, with_block(before, RAW, by_score(own, True)[:2], by_score(rest, False)[:2], 0.5))
        for chance, own, rest in draws(tasks, 2, task_at)
    ]

    assert highest(before, after, worse) > 1 + CLEARLY


SEVERAL = [
    Evaluator("rule"),
    Evaluator("judge", margin_scale=None),
    Evaluator("labelled", label_share=0.2),
    Evaluator("labelled a little", label_share=0.05),
]


def in_stage(
    state: QualityState, stage: int, tasks: Mapping[str, tuple[Sequence[Task], Sequence[Task]]]
) -> QualityState:
    """Returns the state after these tasks, and after the next stage has closed their block."""
    for basis in state.bases:
        titles = [rule.title for rule in state.evaluators if rule.basis is basis]
        arms = {title: [ArmTasks(tuple(arm)) for arm in tasks[title]] for title in titles}
        found = {title: EvaluatorTasks(target, baseline) for title, (target, baseline) in arms.items()}
        state = advance_quality(state, QualityMinute(stage, stage, basis, found))
        state = advance_quality(state, QualityMinute(stage, stage + 1, basis))
    return state


def mean_of(logs: Sequence[float]) -> float:
    return math.fsum([math.exp(log) for log in logs]) / len(logs)


@FEW_SHAPES
@given(data=st.data())
def test_several_evaluators__every_course_of_two_stages__their_evidence_has_mean_at_most_1(data: st.DataObject) -> None:
    """Four answers in each stage, of which chance gives two to the target. All evaluators score the same answers, put
    them in an order of their own, and miss scores and labels of their own. Two rest on labels and two do not."""
    answers = [{rule.title: data.draw(st.sampled_from(GRID)) for rule in SEVERAL} for _ in range(4)]

    def tasks(way: Sequence[int]) -> dict[str, tuple[Sequence[Task], Sequence[Task]]]:
        found: dict[str, tuple[Sequence[Task], Sequence[Task]]] = {}
        for shift, rule in enumerate(SEVERAL):
            made = [
                replace(answers[number][rule.title], order=place * (shift + 1) % 5) for place, number in enumerate(way)
            ]
            found[rule.title] = made[:2], made[2:]
        return found

    begin = initial_quality(SEVERAL, weights=WEIGHTS, sticky=False)
    # Each evaluator's hashes put the answers of each arm in any order as often as in any other one.
    ways = [tasks(way) for way in permutations(range(4))]
    states = [in_stage(in_stage(begin, 1, first), 2, second) for first, second in product(ways, repeat=2)]

    assert len(states) == 24**2
    assert mean_of([assess_quality(state).evidence for state in states]) <= 1 + EXACT
    for rule in SEVERAL:
        assert mean_of([state.of(rule.title).evidence for state in states]) <= 1 + EXACT
        assert mean_of([state.of(rule.title).unscored_evidence for state in states]) <= 1 + EXACT


@FEW_SHAPES
@given(data=st.data())
def test_sticky_users_and_several_evaluators__every_course_of_two_stages__have_mean_at_most_1(
    data: st.DataObject,
) -> None:
    """Chance gives one of four users to the target in the first stage, and one of the others in the second."""
    users = [{rule.title: data.draw(st.sampled_from(FIVE)) for rule in SEVERAL} for _ in range(4)]
    begin = initial_quality(SEVERAL, weights=WEIGHTS, sticky=True)

    def after(state: QualityState, stage: int, way: Sequence[int]) -> QualityState:
        for basis in state.bases:
            found = {}
            for rule in SEVERAL:
                if rule.basis is basis:
                    made = [user_at(users[number][rule.title], order) for order, number in enumerate(way)]
                    found[rule.title] = EvaluatorTasks(ArmTasks(users=(made[0],)), ArmTasks(users=tuple(made[1:])))
            state = advance_quality(state, QualityMinute(stage, stage, basis, found))
            state = advance_quality(state, QualityMinute(stage, stage + 1, basis))
        return state

    states = []
    for first in permutations(range(4)):
        once = after(begin, 1, first)
        states += [after(once, 2, second) for second in permutations(first[1:])]

    assert len(states) == 24 * 6
    for rule in SEVERAL:
        found = [state.of(rule.title) for state in states]
        assert mean_of([one.users.evidence for one in found if one.users is not None]) <= 1 + EXACT
        assert mean_of([one.unscored_evidence for one in found]) <= 1 + EXACT


def test_control__highest_of_several_evaluators_in_place_of_their_mean__is_found() -> None:
    """Three evaluators whose scores have nothing to do with each other."""
    scores = [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (1.0, 1.0, 1.0)]
    rules = [Evaluator(title) for title in "abc"]
    before = [begun(rule) for rule in rules]
    courses = []
    for way in permutations(range(4)):
        logs = []
        for place, (rule, one) in enumerate(zip(rules, before, strict=True)):
            tasks = [Task(order, scores[number][place]) for order, number in enumerate(way)]
            logs.append(with_block(one, rule, tasks[:2], tasks[2:], 1 - FIRST_SHARE).evidence)
        courses.append(logs)

    assert mean_of([log for logs in courses for log in logs]) <= 1 + EXACT
    assert mean_of([max(logs) for logs in courses]) > 1 + CLEARLY


Law = Mapping[tuple[float, float | None], float]
"""The chances of each label and score of an answer."""


def laws(good: float, scores: Sequence[float | None]) -> st.SearchStrategy[Law]:
    """Answers of which the share `good` is good by their labels, and any judge."""
    judge = st.lists(st.integers(0, 4), min_size=len(scores), max_size=len(scores)).filter(any)

    def law(judges: tuple[list[int], list[int]]) -> Law:
        found: dict[tuple[float, float | None], float] = {}
        for label, share, weights in zip((0.0, 1.0), (1 - good, good), judges, strict=True):
            for score, weight in zip(scores, weights, strict=True):
                if chance := share * weight / sum(weights):
                    found[label, score] = chance
        return found

    return st.tuples(judge, judge).map(law)


def labelled_tasks(law: Law, share: float, hidden: frozenset[float]) -> list[tuple[float, Task]]:
    """Returns every task of an answer with its chance; labels of `hidden` are not written down."""
    tasks = []
    for (label, score), chance in law.items():
        shown = None if label in hidden else label
        tasks.append((chance * share, Task(0, score, label_due=True, label=shown)))
        if share < 1:
            tasks.append((chance * (1 - share), Task(0, score)))
    return tasks


def pairs_of(
    before: EvaluatorState,
    rule: Evaluator,
    target: Sequence[tuple[float, Task]],
    baseline: Sequence[tuple[float, Task]],
    pairs: int = 1,
) -> Iterator[tuple[float, EvaluatorState]]:
    """Returns the block of every outcome of independent answers."""
    for drawn in product(product(target, baseline), repeat=pairs):
        chance = math.prod(own[0] * other[0] for own, other in drawn)
        own, rest = ([replace(pair[arm][1], order=place) for place, pair in enumerate(drawn)] for arm in (0, 1))
        yield chance, with_block(before, rule, own, rest, 0.5)


HIDDEN = st.sampled_from([frozenset[float](), frozenset({0.0}), frozenset({1.0}), frozenset({0.0, 1.0})])
SHARES = st.sampled_from([0.05, 0.2, 0.5, 1.0])


@SHAPES
@given(data=st.data(), good=st.sampled_from([0.0, 0.3, 0.9, 1.0]), share=SHARES, labels=HISTORIES)
def test_labels__equal_arms_and_any_judges__worse_has_mean_at_most_1(
    data: st.DataObject, good: float, share: float, labels: LabelSums
) -> None:
    """The judge may see the target's answers in any other way than the baseline's, may have no score for some of
    them, and people may leave out labels of any kind in either arm."""
    rule = Evaluator("labelled", label_share=share)
    target, baseline = (
        labelled_tasks(data.draw(laws(good, (None, 0.0, 1.0))), share, data.draw(HIDDEN)) for _ in range(2)
    )
    before = begun(rule, labels=labels)

    assert highest(before, pairs_of(before, rule, target, baseline), worse) <= 1 + EXACT


@SHAPES
@given(
    data=st.data(),
    good=st.sampled_from([0.2, 0.5, 0.9, 1.0]),
    margin=st.sampled_from([0.05, 0.1, 0.2]),
    share=SHARES,
    labels=HISTORIES,
)
def test_labels__target_lower_by_the_margin_and_any_judges__not_worse_has_mean_at_most_1(
    data: st.DataObject, good: float, margin: float, share: float, labels: LabelSums
) -> None:
    rule = Evaluator("labelled", margin=margin, label_share=share)
    target, baseline = (
        labelled_tasks(data.draw(laws(mean, (None, 0.0, 1.0))), share, data.draw(HIDDEN))
        for mean in (good - margin, good)
    )
    before = begun(rule, labels=labels)

    assert highest(before, pairs_of(before, rule, target, baseline), safe) <= 1 + EXACT


def judged(good: float, called_good: float, called_good_of_bad: float) -> Law:
    """Answers of which so many are good, and a judge who calls so many of the good and of the bad ones good."""
    return {
        (1.0, 1.0): good * called_good,
        (1.0, 0.0): good * (1 - called_good),
        (0.0, 1.0): (1 - good) * called_good_of_bad,
        (0.0, 0.0): (1 - good) * (1 - called_good_of_bad),
    }


EQUAL = judged(0.9, 0.8, 0.1), judged(0.9, 0.9, 0.2)
"""Arms that are equal by labels, of which the judge dislikes the target by ten points."""


def test_control__raw_judge_in_place_of_labels__is_found() -> None:
    share = 0.2
    target, baseline = (labelled_tasks(law, share, frozenset()) for law in EQUAL)
    labelled = Evaluator("labelled", label_share=share)

    corrected, raw = begun(labelled), begun(RAW)
    assert highest(corrected, pairs_of(corrected, labelled, target, baseline), worse) <= 1 + EXACT
    assert highest(raw, pairs_of(raw, RAW, target, baseline), worse) > 1 + CLEARLY


def test_control__labels_weighed_by_a_share_that_is_too_high__are_found() -> None:
    """A tenth of the answers are labelled, and are counted as if half of them were."""
    rule = Evaluator("labelled", label_share=0.5)
    target, baseline = (labelled_tasks(law, 0.1, frozenset()) for law in EQUAL)
    before = begun(rule)

    assert highest(before, pairs_of(before, rule, target, baseline), worse) > 1 + CLEARLY


def scored_tasks(law: Law, hides: float, hidden: float) -> list[tuple[float, Task]]:
    """Returns every task of an answer with its chance; of the scores `hidden` a share of `hides` is missing."""
    tasks = []
    for (_, score), chance in law.items():
        missing = hides if score == hidden else 0.0
        tasks += [(chance * (1 - missing), Task(0, score)), (chance * missing, Task(0))]
    return [(chance, task) for chance, task in tasks if chance]


@SHAPES
@given(
    sensitivity=st.sampled_from([0.7, 0.9, 1.0]),
    specificity=st.sampled_from([0.6, 0.8, 1.0]),
    good=st.sampled_from([0.3, 0.9, 1.0]),
    hides=st.sampled_from([0.0, 0.3, 1.0]),
    cautious=st.sampled_from([0.5, 1.0]),
    pairs=st.integers(1, 2),
)
def test_scores__target_lower_by_the_margin_and_scaled__not_worse_has_mean_at_most_1(
    sensitivity: float, specificity: float, good: float, hides: float, cautious: float, pairs: int
) -> None:
    """A judge shows sensitivity + specificity - 1 of a loss. The margin is scaled by that or, as calibrations do, by
    less. Bad scores of the target and good ones of the baseline may be missing."""
    rule = Evaluator("raw", margin_scale=(sensitivity + specificity - 1) * cautious)
    target, baseline = (judged(mean, sensitivity, 1 - specificity) for mean in (good - rule.margin, good))
    before = begun(rule)
    after = pairs_of(before, rule, scored_tasks(target, hides, 0.0), scored_tasks(baseline, hides, 1.0), pairs)

    assert highest(before, after, safe) <= 1 + EXACT


def test_control__margin_in_the_units_of_a_noisy_judge__is_found() -> None:
    rule = Evaluator("raw", margin_scale=1.0)
    target, baseline = (scored_tasks(judged(good, 0.9, 0.2), 0.0, 0.0) for good in (0.8, 0.9))
    before = begun(rule)

    assert highest(before, pairs_of(before, rule, target, baseline), safe) > 1 + CLEARLY


def test_control__missing_scores_left_out_of_what_may_pass__are_found() -> None:
    rule = Evaluator("rule")
    target, baseline = (scored_tasks(judged(good, 1.0, 0.0), hides, 0.0) for good, hides in ((0.7, 0.8), (0.9, 0.0)))
    # Without the missing ones, what is left seems to be all there is.
    scored = [(chance, task) for chance, task in target if not task.missing]
    whole = math.fsum(chance for chance, _ in scored)
    before = begun(rule)

    assert highest(before, pairs_of(before, rule, target, baseline), safe) <= 1 + EXACT
    left = [(chance / whole, task) for chance, task in scored]
    assert highest(before, pairs_of(before, rule, left, baseline), safe) > 1 + CLEARLY
