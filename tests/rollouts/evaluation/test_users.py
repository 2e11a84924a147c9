"""The evidence by user: no factor may have a mean above 1, for any population of users."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollouts.evaluation import Metric, UserCounts
from rollouts.evaluation.statistics.reference import Reference
from rollouts.evaluation.users import (
    MIN_USERS,
    SHARE_TILTS,
    UserBlock,
    choice_factors,
    share_factors,
    user_factors,
)

EXACT = 1e-9
REFERENCE = Reference(mean=400.0, deviation=350.0, cap=2000.0, slow_bin=315)


def split(values: Sequence[int], chosen: Sequence[int]) -> tuple[dict[int, int], dict[int, int]]:
    own = Counter(values[one] for one in chosen)
    return dict(own), dict(Counter(values) - own)


@given(shares=st.lists(st.integers(0, 5), min_size=2, max_size=10), data=st.data())
def test_share_factors__every_choice_of_target_users__has_mean_1(shares: list[int], data: st.DataObject) -> None:
    drawn = data.draw(st.integers(1, len(shares) - 1))
    choices = [share_factors(*split(shares, chosen)) for chosen in combinations(range(len(shares)), drawn)]

    for logs in zip(*[logs for logs in choices if logs is not None], strict=True):
        assert math.fsum(math.exp(log) for log in logs) / len(choices) == pytest.approx(1, abs=EXACT)


@given(bins=st.lists(st.integers(0, 420), min_size=2, max_size=8), data=st.data())
@pytest.mark.parametrize("metric", [Metric.LATENCY_AVERAGE, Metric.COST])
def test_user_factors__every_choice_by_their_means__has_mean_1(
    metric: Metric, bins: list[int], data: st.DataObject
) -> None:
    drawn = data.draw(st.integers(1, len(bins) - 1))
    choices = []
    for chosen in combinations(range(len(bins)), drawn):
        own, theirs = split(bins, chosen)
        block = UserBlock(UserCounts(latency=own, cost=own), UserCounts(latency=theirs, cost=theirs))
        logs = user_factors(block, metric, reference=REFERENCE, allowance=1.0)
        assert logs is not None
        choices.append(logs)

    for logs in zip(*choices, strict=True):
        assert math.fsum(math.exp(log) for log in logs) / len(choices) == pytest.approx(1, abs=EXACT)


def test_choice_factors__more_users_than_are_counted_out__are_below_the_exact_mean() -> None:
    """The bound for many users is no larger than the exact mean for the same users."""
    few, many = [1.0, 0.2, 0.0], [0.0] * 97
    exact = choice_factors(few, many, SHARE_TILTS)
    bound = choice_factors(few, [*many, 0.0], SHARE_TILTS)

    assert exact is not None
    assert bound is not None
    assert all(one < other + 0.1 for one, other in zip(bound, exact, strict=True))
    assert all(math.isfinite(one) for one in bound)


@pytest.mark.parametrize("outage", [0.0, 1.0])
def test_choice_factors__all_users_alike__say_nothing(outage: float) -> None:
    assert choice_factors([outage] * 10, [outage] * 90, SHARE_TILTS) == pytest.approx([0.0] * 5)


def test_user_factors__an_arm_or_the_reference_missing__say_nothing() -> None:
    alone = UserBlock(UserCounts(errors={5: 3}, latency={10: 1}), UserCounts())

    assert user_factors(alone, Metric.ERROR_RATE, reference=None, allowance=1.0) is None
    assert user_factors(alone, Metric.LATENCY_AVERAGE, reference=REFERENCE, allowance=1.0) is None


def test_user_block__users_of_both_arms__fill_it() -> None:
    block = UserBlock().joined(UserCounts(errors={0: 4}), UserCounts(errors={0: MIN_USERS - 5}))

    assert not block.full
    assert block.joined(UserCounts(errors={1: 1}, unanswered={1: 1}), UserCounts()).full
