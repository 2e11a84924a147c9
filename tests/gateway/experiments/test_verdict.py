"""The verdict of an experiment by its scores alone."""

from __future__ import annotations

import random
from collections.abc import Iterable

from gateway.experiments.verdict import Courses, Rule, Verdict
from rollouts.evaluation.pairs import Pair
from tests.tables.cases import tabled

BOTH_GOOD, WON, LOST = Pair(1.0, 1.0), Pair(1.0, 0.0), Pair(0.0, 1.0)
MARGIN = 0.1


def courses_of(pairs: Iterable[Pair], rule: Rule | None = None, *, tags: Iterable[str] = ()) -> Courses:
    courses = Courses({"good": rule or Rule()}, MARGIN)
    for position, pair in enumerate(pairs, start=1):
        courses.add(position, {"good": pair}, tuple(tags))
    return courses


def test_verdict__all_alike__passes_and_may_stop() -> None:
    courses = courses_of([BOTH_GOOD] * 100)

    assert courses.verdict() is Verdict.PASSED and courses.may_stop()


def test_verdict__target_fails_what_the_baseline_passed__worse_and_may_stop() -> None:
    courses = courses_of([LOST] * 30)

    assert courses.verdict() is Verdict.WORSE and courses.may_stop()


def test_verdict__few_items__undecided() -> None:
    courses = courses_of([BOTH_GOOD] * 10)

    assert courses.verdict() is Verdict.UNDECIDED and not courses.may_stop()


def test_verdict__a_fifth_of_scores_and_more_missing__does_not_pass() -> None:
    pairs = ([BOTH_GOOD] * 3 + [Pair(1.0, None)]) * 100

    assert courses_of(pairs).verdict() is Verdict.UNDECIDED


def test_verdict__once_worse__stays_so() -> None:
    assert courses_of([LOST] * 30 + [WON] * 300).verdict() is Verdict.WORSE


@tabled
def test_verdict__one_new_failure_of_an_evaluator_that_must_pass__by_its_least_rate(
    rule: Rule, expected: Verdict
) -> None:
    courses = courses_of([*[BOTH_GOOD] * 99, LOST], rule)

    assert courses.verdict() is expected
    assert courses.by_evaluator["good"].newly_failed == [100]


def test_stop__an_evaluator_that_must_pass__looks_at_all_items() -> None:
    courses = courses_of([BOTH_GOOD] * 100, Rule(must_pass=True))

    assert courses.verdict() is Verdict.PASSED and not courses.may_stop()


def test_verdict__no_evaluator_is_required__never_passes() -> None:
    assert courses_of([WON] * 100, Rule(required=False)).verdict() is Verdict.UNDECIDED
    assert Courses({}, MARGIN).verdict() is Verdict.UNDECIDED


def test_verdict__several_evaluators__each_required_one_has_to_pass() -> None:
    courses = Courses({"one": Rule(), "other": Rule()}, MARGIN)
    rng = random.Random(7)
    for position in range(200):
        courses.add(position, {"one": BOTH_GOOD, "other": rng.choice([LOST, LOST, WON, BOTH_GOOD, BOTH_GOOD])})

    assert courses.by_evaluator["one"].passes
    assert courses.verdict() is not Verdict.PASSED


def test_tags__worse_in_one_language__names_it_alone() -> None:
    courses = Courses({"good": Rule()}, MARGIN)
    for position in range(240):
        is_german = position % 3 == 0
        pair = LOST if is_german and position % 2 else WON if position % 5 == 0 else BOTH_GOOD
        courses.add(position, {"good": pair}, ["german" if is_german else "english"])

    assert courses.worse_tags() == [("good", "german")]
