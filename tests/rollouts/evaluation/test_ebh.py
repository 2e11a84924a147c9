"""e-BH names no more true hypotheses than its level allows, however the e-values depend on each other."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollouts.evaluation.statistics.ebh import e_bh, needed

LOGS = st.lists(st.floats(-20, 20), max_size=30)


def test_e_bh__few_hypotheses__are_named_by_the_numbers_of_the_paper() -> None:
    """With 10 hypotheses at 5 % one needs 200, two need 100 each, and so on."""
    assert e_bh([math.log(199), 0.0], level=0.05, hypotheses=10) == []
    assert e_bh([0.0, math.log(201)], level=0.05, hypotheses=10) == [1]
    assert e_bh([math.log(101), math.log(150)], level=0.05, hypotheses=10) == [1, 0]
    assert e_bh([math.log(99), math.log(150)], level=0.05, hypotheses=10) == []
    assert e_bh([], level=0.05, hypotheses=10) == []
    assert e_bh([-math.inf], level=0.05, hypotheses=1) == []


@given(LOGS, st.integers(0, 29), st.floats(0, 10))
def test_e_bh__more_evidence_for_one__names_no_fewer(logs: list[float], place: int, more: float) -> None:
    hypotheses = len(logs) + 5
    before = e_bh(logs, level=0.05, hypotheses=hypotheses)
    raised = [log + more if at == place else log for at, log in enumerate(logs)]

    assert set(before) <= set(e_bh(raised, level=0.05, hypotheses=hypotheses))


@given(LOGS)
def test_e_bh__named__all_reach_what_their_number_needs_and_the_next_does_not(logs: list[float]) -> None:
    hypotheses = max(len(logs), 1)
    named = e_bh(logs, level=0.2, hypotheses=hypotheses)

    assert all(logs[place] >= needed(len(named), level=0.2, hypotheses=hypotheses) for place in named)
    others = sorted((log for place, log in enumerate(logs) if place not in named), reverse=True)
    for more, log in enumerate(others, start=1):
        assert log < needed(len(named) + more, level=0.2, hypotheses=hypotheses)


@pytest.mark.parametrize("shared", [0.0, 0.5, 1.0])
def test_e_bh__true_hypotheses_that_depend_on_each_other__are_a_small_share_of_the_named(shared: float) -> None:
    """Thirty e-values of normal samples, of which six are false; `shared` is how much of their noise they have in
    common."""
    rng = random.Random(f"{shared}")
    runs, level, effect, false = 4000, 0.2, 3.0, range(6)
    proportions = []
    for _ in range(runs):
        common = rng.gauss(0, 1)
        logs = []
        for number in range(30):
            noise = math.sqrt(shared) * common + math.sqrt(1 - shared) * rng.gauss(0, 1)
            sample = noise + (effect if number in false else 0)
            logs.append(effect * sample - effect * effect / 2)
        named = e_bh(logs, level=level, hypotheses=30)
        proportions.append(sum(place not in false for place in named) / len(named) if named else 0.0)

    spread = math.sqrt(level / runs)
    assert math.fsum(proportions) / runs <= level * 24 / 30 + 3 * spread
