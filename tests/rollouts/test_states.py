"""The stages of a rollout, as far as they are left out."""

from __future__ import annotations

import pytest

from rollouts.states import DEFAULT_STAGES, Stage, StageError, stages_from


def test_stages_from__the_default_ones_given__are_the_same() -> None:
    assert stages_from([stage._asdict() for stage in DEFAULT_STAGES]) == DEFAULT_STAGES


def test_stages_from__omitted_minima__are_those_of_the_default_stage_below() -> None:
    given = [{"weight": 7}, {"weight": 50, "min_requests": 0}, {"weight": 99, "min_duration_minutes": 5}]

    assert stages_from(given) == (Stage(7, 30, 50, 4), Stage(50, 120, 0, 4), Stage(99, 5, 400, 0))


def test_stages_from__omitted_settle_minutes__at_most_a_sixth_of_the_stage() -> None:
    given = [{"weight": 1, "min_duration_minutes": 13}, {"weight": 2, "settle_minutes": 0}, {"weight": 100}]

    assert [stage.settle_minutes for stage in stages_from(given)] == [2, 0, 0]


def test_stages_from__stage_that_settles_for_longer_than_it_lasts__says_how_long_it_lasts() -> None:
    assert stages_from([{"weight": 9, "min_duration_minutes": 7, "settle_minutes": 7}])[0].settle_minutes == 7

    with pytest.raises(StageError) as caught:
        stages_from([{"weight": 9, "min_duration_minutes": 7, "settle_minutes": 8}])

    assert caught.value.field == "stages[0].settle_minutes"
    assert caught.value.message == "Expected an integer from 0 to 7, the min_duration_minutes of the stage."
