from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.rollouts.peers import (
    Pooled,
    confidence_sequence,
    first_alarms,
    group_bound,
    group_sequential,
    mixture_test,
    planned_information,
    sequence_half_width,
    threshold,
    z_test,
)


def pooled(*minutes: tuple[int, int, int, int], stage: int = 1) -> Pooled:
    return Pooled.of([(stage, *minute) for minute in minutes])


def test_pooled__minutes__are_summed_up() -> None:
    found = pooled((10, 1, 90, 0), (20, 0, 80, 4))

    assert found.target.tolist() == [10, 30]
    assert found.baseline_bad.tolist() == [0, 4]
    assert found.difference().tolist() == pytest.approx([0.1, 1 / 30 - 4 / 170])


def test_z__pooled_counts__is_the_statistic_of_the_textbooks() -> None:
    # 15 of 100 against 5 of 100: (0.15 - 0.05) / sqrt(0.1 * 0.9 * 2 / 100).
    assert pooled((100, 15, 100, 5)).z()[0] == pytest.approx(0.1 / math.sqrt(0.0018))


@pytest.mark.parametrize(("bad", "alarms"), [(11, False), (12, True)])
def test_z_test__one_sided_5_percent__begins_at_1_645(bad: int, alarms: bool) -> None:
    # z is 1.56 with 11 bad requests and 1.78 with 12.
    assert z_test(pooled((100, bad, 100, 5)))[0] == alarms


def test_z_test__fewer_than_20_requests_of_the_target__is_silent() -> None:
    assert not z_test(pooled((19, 19, 1000, 0)))[0]
    assert z_test(pooled((20, 20, 1000, 0)))[0]


@pytest.mark.parametrize(
    ("looks", "constant"),
    # C_B(K, 0.05) of Jennison and Turnbull, Group Sequential Methods (2000), table 2.3.
    [(1, 1.960), (2, 1.977), (3, 2.004), (5, 2.040), (6, 2.053)],
)
def test_group_bound__looks_at_even_distances__is_o_brien_and_flemings(looks: int, constant: float) -> None:
    information = tuple((look + 1) / looks for look in range(looks))

    assert group_bound(information) == pytest.approx(constant, abs=0.001)


def test_group_bound__brownian_motion_at_the_planned_stage_ends__is_crossed_in_2_5_percent() -> None:
    information = np.array(planned_information())
    steps = np.diff(information, prepend=0.0)
    paths = np.cumsum(np.random.default_rng(3).standard_normal((200_000, len(steps))) * np.sqrt(steps), axis=1)

    crossed = (paths >= group_bound(planned_information())).any(axis=1).mean()

    # Four standard deviations of the count are 0.0014.
    assert crossed == pytest.approx(0.025, abs=0.0014)


def test_group_sequential__bad_minute_within_a_stage__is_not_looked_at() -> None:
    bad, fine = (6, 3000, 2900, 3000, 100), (6, 30_000, 0, 30_000, 2800)

    assert not group_sequential(Pooled.of([bad, fine])).any()
    assert group_sequential(Pooled.of([fine, bad])).any() == (group_sequential(Pooled.of([fine, bad]))[1])


def test_group_sequential__end_of_stage__alarms_above_the_bound() -> None:
    assert group_sequential(Pooled.of([(6, 1000, 0, 1000, 0), (6, 1000, 90, 1000, 40)])).tolist() == [False, True]


def test_mixture_test__counts__is_the_integral_over_the_prior() -> None:
    counts = pooled((400, 30, 600, 12))
    difference, variance = counts.difference()[0], counts.variance()[0]
    effects = np.linspace(-0.3, 0.3, 200_001)
    prior = np.exp(-(effects**2) / (2 * 0.02**2)) / (0.02 * math.sqrt(2 * math.pi))
    ratio = np.exp((effects * difference - effects**2 / 2) / variance)
    integral = float(np.sum(prior * ratio) * (effects[1] - effects[0]))

    assert integral > 20
    assert mixture_test(counts)[0]
    # Half as many requests give the same difference with too little evidence.
    smaller = pooled((100, 7, 150, 3))
    variance = smaller.variance()[0]
    ratio = np.exp((effects * smaller.difference()[0] - effects**2 / 2) / variance)
    assert float(np.sum(prior * ratio) * (effects[1] - effects[0])) < 20
    assert not mixture_test(smaller)[0]


def test_confidence_sequence__half_width__is_the_formula_of_the_paper() -> None:
    # arXiv 2103.06476, one-sided: s sqrt( 2 (t r^2 + 1) / (t^2 r^2) ln(1 + sqrt(t r^2 + 1) / (2 a)) ), with r^2
    # = (-2 ln 2a + ln(1 - 2 ln 2a)) / t* for the tightest at t* = 5,000.
    r_squared = (-2 * math.log(0.1) + math.log(1 - 2 * math.log(0.1))) / 5000
    t, variance = 2000.0, 0.02
    wide = math.sqrt(
        variance
        * 2
        * (t * r_squared + 1)
        / (t * t * r_squared)
        * math.log(1 + math.sqrt(t * r_squared + 1) / (2 * 0.05))
    )

    assert sequence_half_width(np.array([variance]), np.array([t]), 0.05)[0] == pytest.approx(wide)


def test_confidence_sequence__large_difference__alarms() -> None:
    assert confidence_sequence(pooled((1000, 100, 1000, 20)))[0]
    assert not confidence_sequence(pooled((1000, 30, 1000, 20)))[0]


def test_threshold__five_bad_minutes_in_all__alarm_at_the_fifth() -> None:
    bad, fine, nothing = (10, 1, 50, 0), (100, 5, 50, 0), (0, 0, 50, 0)

    raised = threshold(pooled(bad, fine, bad, bad, nothing, bad, fine, bad, fine))

    assert raised.tolist() == [False] * 7 + [True] * 2


def test_first_alarms__tests_that_alarm__say_when() -> None:
    found = first_alarms(pooled((10, 5, 90, 1), (10, 5, 90, 1), (10, 5, 90, 1)))

    assert found["z-test each minute"] == (2, 20)
    assert "threshold" not in found
