"""Each bet of an experiment's verdict has a mean of at most 1 while its hypothesis holds, with repeats and gaps too."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from gateway.experiments.verdict import Courses, Rule
from rollouts.evaluation.pairs import Pair

MARGIN = 0.1
EXACT = 1e-9
scores = st.floats(0, 1)
histories = st.lists(st.builds(Pair, st.none() | scores, st.none() | scores), max_size=10)
# The outcomes of the next item with their weights, which are made probabilities below.
outcomes = st.lists(st.tuples(st.floats(0.01, 1), scores, scores), min_size=1, max_size=6)


def _ratio(history: Sequence[Pair], chances: Sequence[tuple[float, Pair]], log: Callable[[Courses], float]) -> float:
    """Returns the mean of the e-value after the next item, divided by what it is now."""

    def courses(pairs: Sequence[Pair]) -> Courses:
        found = Courses({"good": Rule()}, MARGIN)
        for position, pair in enumerate(pairs, start=1):
            found.add(position, {"good": pair})
        return found

    whole = math.fsum(chance for chance, _ in chances)
    now = log(courses(history))
    return math.fsum(chance / whole * math.exp(log(courses([*history, pair])) - now) for chance, pair in chances)


def _worse(courses: Courses) -> float:
    return courses.by_evaluator["good"].process.log_worse


def _not_worse(courses: Courses) -> float:
    return courses.by_evaluator["good"].process.log_not_worse


@given(histories, outcomes)
def test_worse__next_item_fair_to_the_target__mean_of_the_factor_at_most_1(
    history: list[Pair], drawn: list[tuple[float, float, float]]
) -> None:
    """Each outcome comes as often with the scores exchanged, so that the target is as good as the baseline."""
    chances = [(chance, pair) for chance, one, other in drawn for pair in (Pair(one, other), Pair(other, one))]

    assert _ratio(history, chances, _worse) <= 1 + EXACT


@given(histories, outcomes, st.booleans())
def test_not_worse__next_item_lower_by_the_margin__mean_of_the_factor_at_most_1(
    history: list[Pair], drawn: list[tuple[float, float, float]], hides_bad: bool
) -> None:
    """The target gets the baseline's scores of all outcomes, less the margin where there is room for it; a score that
    is missing must not help it."""
    chances = [(chance, Pair(max(one - MARGIN, 0.0), max(one, MARGIN))) for chance, one, _ in drawn]
    if hides_bad:
        chances = [(chance, Pair(None, pair.baseline)) for chance, pair in chances]

    assert _ratio(history, chances, _not_worse) <= 1 + EXACT


def test_several_evaluators__the_same_scores_thrice__mean_at_most_1_over_all_courses() -> None:
    """Evaluators that depend on each other entirely are no excuse for another mean."""
    total = 0.0
    for course in product((Pair(0.0, 1.0), Pair(1.0, 0.0)), repeat=8):
        courses = Courses({name: Rule() for name in "abc"}, MARGIN)
        for position, pair in enumerate(course, start=1):
            courses.add(position, dict.fromkeys("abc", pair))
        total += math.exp(courses.by_evaluator["a"].process.log_worse) / 2**8

    assert total <= 1 + EXACT
