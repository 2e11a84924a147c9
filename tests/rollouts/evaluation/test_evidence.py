"""The factors of the e-processes have a mean of at most 1 while the target is harmless: all cases are enumerated."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from itertools import combinations
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollouts.evaluation.policy import LATENCY_MARGIN
from rollouts.evaluation.statistics.evidence import (
    LOWER_ODDS,
    ODDS,
    RARE_ERRORS,
    RARELY_SLOW,
    TILTS,
    log_mean,
    odds_factors,
    rare_factor,
    tilt_factors,
    tilt_factors_3,
)
from rollouts.evaluation.statistics.grid import BINS_PER_MARGIN, bin_of
from rollouts.evaluation.statistics.reference import Reference, reference_from

MAX_TOTAL = 12
EXACT = 1e-9
REFERENCE = Reference(mean=400.0, deviation=350.0, cap=2000.0, slow_bin=315)
ODD_REFERENCE = Reference(mean=1.0, deviation=0.05, cap=3.0, slow_bin=10)


def mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


@pytest.mark.parametrize("total", range(1, MAX_TOTAL + 1))
def test_odds_factors__every_choice_of_target_requests__has_mean_1(total: int) -> None:
    for all_events in range(total + 1):
        for drawn in range(total + 1):
            choices = [
                odds_factors(
                    events=sum(one < all_events for one in chosen),
                    drawn=drawn,
                    all_events=all_events,
                    total=total,
                    odds=ODDS + LOWER_ODDS,
                )
                for chosen in combinations(range(total), drawn)
            ]
            for logs in zip(*choices, strict=True):
                assert abs(mean([math.exp(log) for log in logs]) - 1) < EXACT


@pytest.mark.parametrize("truth", [1.0, 1.3, 2.0])
def test_odds_factors__turned_round_at_or_above_the_margin__has_mean_at_most_1(truth: float) -> None:
    """Returns the evidence of safety, psi^-x h(psi), when the target's odds are `truth` times those of the margin."""
    margin = math.log(2.5)
    for total in range(2, 10):
        for all_events in range(1, total):
            for drawn in range(1, total):
                weighted, weights = 0.0, 0.0
                for chosen in combinations(range(total), drawn):
                    events = sum(one < all_events for one in chosen)
                    [log] = odds_factors(events=events, drawn=drawn, all_events=all_events, total=total, odds=(margin,))
                    weight = math.exp(events * (margin + math.log(truth)))
                    weighted += weight * math.exp(-log)
                    weights += weight
                assert weighted / weights < 1 + EXACT


@given(
    values=st.lists(st.integers(0, 420), min_size=2, max_size=10),
    data=st.data(),
    upwards=st.booleans(),
    reference=st.sampled_from([REFERENCE, ODD_REFERENCE]),
    bins=st.sampled_from([0, BINS_PER_MARGIN]),
    factors=st.sampled_from([tilt_factors, tilt_factors_3]),
)
def test_tilt_factors__every_choice_of_target_requests__has_mean_at_most_1(
    values: list[int],
    data: st.DataObject,
    upwards: bool,
    reference: Reference,
    bins: int,
    factors: Callable[..., tuple[float, ...]],
) -> None:
    """The target's values may be exactly as many times as large as the divisor says."""
    drawn = data.draw(st.integers(0, len(values)))
    choices = []
    for chosen in combinations(range(len(values)), drawn):
        own = Counter(values[one] + bins * (values[one] > 0) for one in chosen)
        theirs = Counter(values[one] for one in range(len(values)) if one not in chosen)
        choices.append(factors(own, theirs, reference, divisor=1.25 if bins else 1.0, upwards=upwards))

    for logs in zip(*choices, strict=True):
        assert mean([math.exp(log) for log in logs]) < 1 + EXACT


@pytest.mark.parametrize("weight", [0.05, 0.25, 0.5, 0.75, 0.9])
@pytest.mark.parametrize("variation", [0.5, 1.0, 1.5, 1.9, 2.5])
def test_tilt_factors__harmless_target_at_any_weight__speak_for_it(weight: float, variation: float) -> None:
    """`variation` is the deviation of log-normal values by their mean, which is up to 1.9 for three models at once."""
    spread = math.sqrt(math.log1p(variation**2))
    quantiles = [NormalDist(0.0, spread).inv_cdf((rank + 0.5) / 1_000) for rank in range(1_000)]
    values = Counter(bin_of(1_000 * math.exp(one)) for one in quantiles)
    target, baseline = (
        {number: round(count * share * 100) for number, count in values.items()} for share in (weight, 1 - weight)
    )
    reference = reference_from(values)
    assert reference is not None

    assert max(tilt_factors(target, baseline, reference, divisor=LATENCY_MARGIN, upwards=False)) > 0


@pytest.mark.parametrize("rates", [RARE_ERRORS, RARELY_SLOW])
@pytest.mark.parametrize("times", [1.0, 1.1, 5.0, 20.0])
def test_rare_factor__rate_at_or_above_the_margin__has_mean_at_most_1(rates: tuple[float, float], times: float) -> None:
    rate = rates[1] * times
    expected = rate * math.exp(rare_factor(events=1, requests=1, rates=rates))
    expected += (1 - rate) * math.exp(rare_factor(events=0, requests=1, rates=rates))

    assert expected < 1 + EXACT


def test_factors__no_control_or_no_target__are_1() -> None:
    for drawn, events in ((0, 0), (8, 3)):
        assert odds_factors(events=events, drawn=drawn, all_events=3, total=8, odds=ODDS) == pytest.approx([0.0] * 5)
    assert tilt_factors({200: 3}, {}, REFERENCE, divisor=1.0, upwards=True) == (0.0,) * len(TILTS)
    assert tilt_factors({}, {200: 3}, REFERENCE, divisor=1.0, upwards=True) == (0.0,) * len(TILTS)


def test_odds_factors__crowded_minute__neither_overflows_nor_loses_precision() -> None:
    logs = odds_factors(events=6000, drawn=50_000, all_events=12_000, total=100_000, odds=ODDS)

    assert all(math.isfinite(log) and log < 0 for log in logs)


def test_log_mean__very_different_values__neither_overflows_nor_loses_the_larger() -> None:
    assert log_mean([1000.0, 0.0]) == pytest.approx(1000 - math.log(2))


def test_reference_from__few_values__is_none() -> None:
    assert reference_from({200: 99}) is None


def test_reference_from__values__are_cut_at_the_99th_percentile() -> None:
    reference = reference_from({100: 95, 200: 4, 600: 1})

    assert reference is not None
    assert reference.slow_bin == 100
    assert reference.cap == pytest.approx(math.exp(199 * math.log(1.25) / 10))
    assert reference.mean == pytest.approx(0.95 * math.exp(99 * math.log(1.25) / 10) + 0.05 * reference.cap)


@pytest.mark.parametrize("histogram", [{0: 200}, {200: 200}])
def test_reference_from__constant_values__keeps_scores_finite(histogram: dict[int, int]) -> None:
    reference = reference_from(histogram)

    assert reference is not None
    for upwards in (True, False):
        logs = tilt_factors({600: 3, 0: 1}, {0: 5, 200: 2}, reference, divisor=1.0, upwards=upwards)
        assert all(map(math.isfinite, logs))
