"""The test of the sample ratio: whether the arms get their shares of the traffic."""

from __future__ import annotations

import math

import pytest

from rollouts.evaluation.statistics.sample_ratio import SampleRatio


def after(weight: int, target: int, baseline: int) -> SampleRatio:
    return SampleRatio().advance(stage=1, weight=weight, target=target, baseline=baseline)


@pytest.mark.parametrize("weight", [1, 5, 50, 99])
def test_sample_ratio__every_count_at_the_right_share__has_mean_1(weight: int) -> None:
    share, units = weight / 100, 40
    expected = 0.0
    for target in range(units + 1):
        chance = math.comb(units, target) * share**target * (1 - share) ** (units - target)
        expected += chance * math.exp(after(weight, target, units - target).evidence)

    assert expected == pytest.approx(1, abs=1e-6)


def test_sample_ratio__two_stages_at_the_right_shares__has_mean_1() -> None:
    expected = 0.0
    for first in range(9):
        for second in range(9):
            chance = math.comb(8, first) * 0.1**first * 0.9 ** (8 - first) * math.comb(8, second) * 0.5**8
            both = after(10, first, 8 - first).advance(stage=2, weight=50, target=second, baseline=8 - second)
            expected += chance * math.exp(both.evidence)

    assert expected == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(("weight", "baseline"), [(50, 20), (10, 150), (1, 1300)])
def test_sample_ratio__no_record_of_the_target__alarms_soon(weight: int, baseline: int) -> None:
    """A Bayes factor with a single concentration of 1000 would need 126, 399 and 1667 units."""
    assert after(weight, 0, baseline).alarmed


def test_sample_ratio__a_fifth_of_the_target_lost__alarms() -> None:
    assert after(50, 1600, 2000).alarmed
    assert not after(50, 1960, 2040).alarmed


def test_sample_ratio__late_units_of_an_earlier_stage__are_left_out() -> None:
    one = after(10, 20, 80).advance(stage=2, weight=50, target=5, baseline=5)

    assert one.advance(stage=1, weight=10, target=9, baseline=0) is one


def test_sample_ratio__everybody_in_the_target__says_nothing() -> None:
    assert after(100, 500, 3).evidence == 0
