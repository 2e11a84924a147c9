"""The bets on pairs have a mean of at most 1 while their hypothesis holds: all cases of small sets are enumerated."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollouts.evaluation.pairs import Pair, PairProcess

MARGIN = 0.1
EXACT = 1e-9
scores = st.none() | st.floats(0, 1)
pairs = st.lists(st.builds(Pair, scores, scores), max_size=30)


def process_of(pairs: Iterable[Pair], margin: float) -> PairProcess:
    process = PairProcess(margin)
    for pair in pairs:
        process.add(pair)
    return process


@pytest.mark.parametrize("chances", [(1, 1, 0), (1, 1, 2), (2, 3, 1), (0, 1, 4)])
def test_worse__target_not_lower__every_course_has_mean_at_most_1(chances: tuple[int, int, int]) -> None:
    """`chances` are those of a loss, a win and a tie: a target that wins at least as often as it loses."""
    assert _mean_of(chances, lambda process: process.log_worse) <= 1 + EXACT


@pytest.mark.parametrize("chances", [(11, 1, 88), (30, 20, 50), (55, 45, 0), (10, 0, 90), (40, 0, 60)])
def test_not_worse__target_lower_by_the_margin__every_course_has_mean_at_most_1(chances: tuple[int, int, int]) -> None:
    assert _mean_of(chances, lambda process: process.log_not_worse) <= 1 + EXACT


def _mean_of(chances: tuple[int, int, int], log: Callable[[PairProcess], float], length: int = 6) -> float:
    outcomes = (Pair(0.0, 1.0), Pair(1.0, 0.0), Pair(1.0, 1.0))
    whole = sum(chances)
    mean = 0.0
    for course in product(range(3), repeat=length):
        chance = math.prod(Fraction(chances[outcome], whole) for outcome in course)
        if chance:
            process = process_of([outcomes[outcome] for outcome in course], MARGIN)
            mean += float(chance) * math.exp(log(process))
    return mean


@given(pairs)
def test_process__any_pairs__is_finite_and_counts_each_once(given_pairs: list[Pair]) -> None:
    process = process_of(given_pairs, MARGIN)

    assert all(map(math.isfinite, (process.log_worse, process.log_not_worse)))
    assert process.peak_worse >= max(process.log_worse, 0)
    assert process.peak_not_worse >= max(process.log_not_worse, 0)
    assert process.pairs == len(given_pairs)
    assert process.scored == process.wins + process.losses + process.ties
    if (found := process.difference) is not None and found.low is not None and found.high is not None:
        assert -1 <= found.low <= found.difference <= found.high <= 1


@given(pairs, st.data())
def test_not_worse__a_missing_score__counts_at_least_as_much_against_the_target(
    given_pairs: list[Pair], data: st.DataObject
) -> None:
    hidden = data.draw(st.lists(st.sampled_from(["target", "baseline", ""]), min_size=30, max_size=30))
    less = [
        Pair(None if hides == "target" else pair.target, None if hides == "baseline" else pair.baseline)
        for pair, hides in zip(given_pairs, hidden, strict=False)
    ]

    assert process_of(less, MARGIN).log_not_worse <= process_of(given_pairs, MARGIN).log_not_worse + EXACT


def test_worse__missing_scores__say_nothing() -> None:
    process = process_of([Pair(None, 1.0), Pair(0.0, None), Pair(None, None)] * 50, MARGIN)

    assert (process.log_worse, process.scored, process.missing) == (0.0, 0, 150)
    assert (process.target_missing, process.baseline_missing) == (100, 100)
    assert process.difference is None and process.missing_share == 1


def test_difference__one_pair__has_no_interval() -> None:
    found = process_of([Pair(0.25, 1.0)], MARGIN).difference

    assert found is not None
    assert (found.target, found.baseline, found.difference, found.low, found.high) == (0.25, 1.0, -0.75, None, None)


@pytest.mark.parametrize("margin", [0.0, 1.0, -0.1, math.nan])
def test_margin__out_of_range__is_refused(margin: float) -> None:
    with pytest.raises(ValueError, match="margin"):
        PairProcess(margin)
