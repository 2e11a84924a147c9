"""The expected time until a fault is found has to match simulated rollouts."""

from __future__ import annotations

import math
from random import Random
from statistics import median

import pytest

from rollouts.evaluation import Metric, MinuteCounts, Policy, Status, advance, assess, initial_state
from rollouts.evaluation.power import Traffic, mean_growth, power, rate_growth
from rollouts.evaluation.statistics.evidence import TILTS
from rollouts.evaluation.statistics.reference import reference_from
from rollouts.states import DEFAULT_STAGES, Stage
from tests.rollouts.evaluation.minutes import USUAL_MS, arm
from tests.tables.cases import tabled

RUNS = 31


def events(rng: Random, requests: int, share: float) -> int:
    return sum(rng.random() < share for _ in range(requests))


def minutes_until_found(rng: Random, per_minute: int, usual: float, fallen: float) -> float:
    """Returns the minutes of a rollout that goes through the default stages by their minima."""
    weights = tuple(stage.weight for stage in DEFAULT_STAGES)
    state = initial_state(Policy(), latency={}, cost={}, weights=weights, sticky=False)
    number, began = 1, 0
    for minute in range(1, 5000):
        stage = DEFAULT_STAGES[number - 1]
        drawn = events(rng, per_minute, stage.weight / 100)
        others = per_minute - drawn
        target, baseline = arm(drawn, events(rng, drawn, fallen)), arm(others, events(rng, others, usual))
        state = advance(state, MinuteCounts(minute, number, stage.weight, target, baseline))
        if assess(state).metrics[Metric.UNANSWERED].status is Status.FAILING:
            return minute
        met = state.stage_target.answered >= stage.min_requests and minute - began >= stage.min_duration_minutes
        if met and stage.weight < 50:
            number, began = number + 1, minute
    return math.inf


@pytest.mark.parametrize(("per_minute", "usual"), [(60, 0.02), (60, 0.10), (200, 0.005), (12, 0.02)])
def test_power__typical_fall__is_about_the_median_of_simulated_rollouts(per_minute: int, usual: float) -> None:
    fall = power(DEFAULT_STAGES, Traffic(per_minute, usual)).fall
    rng = Random(5)

    simulated = median(minutes_until_found(rng, per_minute, usual, 1 - fall.fallen_to) for _ in range(RUNS))

    assert fall.minutes is not None
    assert 1 / 1.5 < fall.minutes / simulated < 1.5


def test_power__default_plan__says_it_in_words() -> None:
    result = power(DEFAULT_STAGES, Traffic(60, 0.02))

    assert (
        result.sentences[0]
        == "At 60 requests a minute a fall from 98 % to 94 % of answers is found within about 2 hours."
    )
    assert result.smallest is not None
    assert result.fall.fallen_to < result.smallest.fallen_to < result.fall.answered_share
    assert result.slower_minutes is None


@pytest.mark.parametrize("per_minute", [0.5, 3, 60, 300])
@pytest.mark.parametrize("usual", [0.0, 0.02, 0.3, 0.97])
def test_power__any_stage_and_time__no_sentence_contradicts_another(per_minute: float, usual: float) -> None:
    for number, stage in enumerate(DEFAULT_STAGES[:-1]):
        # The minima are nearly met, met just now, and met long ago.
        for elapsed, served in ((0, 0), (stage.min_duration_minutes - 1, 0), (stage.min_duration_minutes, 9000)):
            found = power(DEFAULT_STAGES[number:], Traffic(per_minute, usual), elapsed_minutes=elapsed, served=served)
            first, second, *_ = found.sentences

            assert ("not even" in second) == (found.smallest is None)
            if "not found" not in first:
                assert found.smallest is not None
                assert found.smallest.fallen_to >= found.fall.fallen_to


def test_power__waits_at_75_percent__finds_what_does_not_pass() -> None:
    waiting = power(DEFAULT_STAGES[5:], Traffic(60, 0.02), elapsed_minutes=600, served=9000)

    assert waiting.smallest is not None
    assert waiting.smallest.fallen_to > 0.94


def test_power__more_traffic__finds_the_same_sooner_and_smaller_ones_at_all() -> None:
    quiet, busy = (power(DEFAULT_STAGES, Traffic(rate, 0.02)) for rate in (3, 300))

    assert quiet.fall.minutes is not None
    assert busy.fall.minutes is not None
    assert busy.fall.minutes < quiet.fall.minutes
    assert quiet.smallest is not None
    assert busy.smallest is not None
    assert busy.smallest.fallen_to > quiet.smallest.fallen_to


@tabled
def test_power__too_little_to_compare__finds_nothing_and_says_so(
    stages: tuple[Stage, ...], per_minute: float, sentence: str
) -> None:
    result = power(stages, Traffic(per_minute, 0.02))

    assert result.fall.minutes is None
    assert sentence in result.sentences[0]


def test_power__stages_without_minima__are_over_before_anything_is_found() -> None:
    result = power([Stage(1, 0, 0), Stage(100, 0, 0)], Traffic(60, 0.02))

    assert result.smallest is None
    assert "not even a target that never answers" in result.sentences[1]


def test_power__latencies_known__tells_of_a_slower_target_too() -> None:
    latency = Traffic(60, 0.02, USUAL_MS, reference_from(USUAL_MS))

    result = power(DEFAULT_STAGES, latency)

    assert result.slower_minutes is not None
    assert result.sentences[-1].startswith("A target 1.3 times as slow on average is found within about")


@pytest.mark.parametrize("share", [0.01, 0.5, 0.75, 0.9])
def test_growth__no_difference__is_none(share: float) -> None:
    reference = reference_from(USUAL_MS)
    assert reference is not None

    assert rate_growth(0.02, 0.02, share, math.log(3)) <= 0
    assert all(mean_growth(USUAL_MS, reference, 1.0, share, tilt) <= 0 for tilt in TILTS)


@tabled
def test_power__nonsense__is_refused(stages: tuple[Stage, ...], traffic: Traffic, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        power(stages, traffic)
