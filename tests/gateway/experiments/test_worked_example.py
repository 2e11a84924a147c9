"""The worked example of docs/experiments.md, worked out again by the functions that decide."""

from __future__ import annotations

import math
import re

import pytest

from gateway.experiments.verdict import LOOK_EVERY, MOST_MISSING, NOT_WORSE, TAG_LEVEL, WORSE, Courses, Rule
from rollouts.evaluation.pairs import STAKES, Pair
from tests.worked_examples import example_of, page_of, rows


@pytest.fixture(scope="module")
def example() -> str:
    return example_of("experiments.md")


def positions(example: str, pattern: str) -> set[int]:
    found = re.search(pattern, " ".join(example.split()))
    assert found is not None, pattern
    return {int(number) for number in re.findall(r"\d+", found[1])}


def courses_of(example: str, items: int) -> Courses:
    lost = positions(example, r"B alone is bad on the items ([\d, and]+)")
    won = positions(example, r"A alone on ([\d, and]+)")
    courses = Courses({"good": Rule()}, margin=0.1)
    for position in range(1, items + 1):
        courses.add(position, {"good": Pair(float(position not in lost), float(position not in won))})
    return courses


def test_first_item__all_purses__as_by_hand(example: str) -> None:
    stakes, worse, not_worse = rows(example, "Stake")
    process = courses_of(example, 1).by_evaluator["good"].process

    assert [float(stake) for stake in stakes[1:-1]] == list(STAKES)
    assert worse[1:-1] == [f"{1 + stake:.4f}" for stake in STAKES]
    assert not_worse[1:-1] == [f"{1 + stake * (-1 + 0.1) / (1 + 0.1):.4f}" for stake in STAKES]
    assert worse[-1] == f"{math.exp(process.log_worse):.4f}"
    assert not_worse[-1] == f"{math.exp(process.log_not_worse):.4f}"
    text = " ".join(example.split())
    assert f"1 + 0.2 x (-1 + 0.1) / (1 + 0.1) = {1 + 0.2 * (-1 + 0.1) / (1 + 0.1):.4f}" in text
    assert f"1 + 0.2 x 0.1 / 1.1 = {1 + 0.2 * 0.1 / 1.1:.4f}" in text


def test_looks__purses_and_verdicts__as_the_page_says(example: str) -> None:
    table = rows(example, "Items")[1:]
    assert [int(row[0]) for row in table] == [LOOK_EVERY * number for number in range(1, len(table) + 1)]
    for items, wins, losses, ties, worse, not_worse, verdict in table:
        courses = courses_of(example, int(items))
        process = courses.by_evaluator["good"].process
        assert (int(wins), int(losses), int(ties)) == (process.wins, process.losses, process.ties)
        assert (worse, not_worse) == (f"{math.exp(process.peak_worse):.2f}", f"{math.exp(process.peak_not_worse):.2f}")
        assert str(courses.verdict()) == verdict
        assert courses.may_stop() == (items == table[-1][0])


def test_page__bounds__are_those_of_the_rule() -> None:
    text = " ".join(page_of("experiments.md").split())

    assert f"ever* reaches {WORSE:g} is at most one in a hundred" in text
    assert f"ever reaches {NOT_WORSE:g} is at most one in twenty" in text
    assert f"after every {LOOK_EVERY} items" in text
    assert (MOST_MISSING, TAG_LEVEL) == (1 / 5, 1 / 20)
