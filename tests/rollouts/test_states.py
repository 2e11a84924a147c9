"""Statuses, transitions and stages of a rollout."""

from __future__ import annotations

from itertools import product

import pytest

from rollouts.states import (
    ACTIVE,
    DEFAULT_STAGES,
    MAX_STAGES,
    Position,
    Stage,
    StageError,
    Status,
    Transition,
    TransitionError,
    after,
    stages_from,
)

OUTCOMES = {
    (Status.PENDING, Transition.START): Position(Status.RUNNING, 1),
    (Status.PENDING, Transition.ROLL_BACK): Position(Status.ROLLED_BACK, 0),
    (Status.PENDING, Transition.COMPLETE): Position(Status.COMPLETED, 0),
    (Status.RUNNING, Transition.PAUSE): Position(Status.PAUSED, 2),
    (Status.RUNNING, Transition.PROMOTE): Position(Status.RUNNING, 3),
    (Status.RUNNING, Transition.ROLL_BACK): Position(Status.ROLLED_BACK, 2),
    (Status.RUNNING, Transition.COMPLETE): Position(Status.COMPLETED, 2),
    (Status.PAUSED, Transition.START): Position(Status.RUNNING, 2),
    (Status.PAUSED, Transition.PROMOTE): Position(Status.PAUSED, 3),
    (Status.PAUSED, Transition.ROLL_BACK): Position(Status.ROLLED_BACK, 2),
    (Status.PAUSED, Transition.COMPLETE): Position(Status.COMPLETED, 2),
}


@pytest.mark.parametrize(("status", "transition"), list(product(Status, Transition)))
def test_after__every_status_and_transition__is_as_listed_or_refused(status: Status, transition: Transition) -> None:
    position = Position(status, 0 if status is Status.PENDING else 2)

    if (status, transition) in OUTCOMES:
        assert after(transition, position, 3) == OUTCOMES[status, transition]
    else:
        with pytest.raises(TransitionError, match=f"rollout that is {status.value}"):
            after(transition, position, 3)


@pytest.mark.parametrize("status", [Status.RUNNING, Status.PAUSED])
def test_after__promote_at_the_last_stage__completes(status: Status) -> None:
    assert after(Transition.PROMOTE, Position(status, 3), 3) == Position(Status.COMPLETED, 3)


def test_status__terminal_ones__are_the_others_than_active() -> None:
    assert {status for status in Status if status.is_terminal} == {Status.COMPLETED, Status.ROLLED_BACK}
    assert {Status.PENDING, Status.RUNNING, Status.PAUSED} == ACTIVE


def test_stages_from__nothing__is_seven_from_one_to_a_hundred_percent() -> None:
    assert stages_from(None) == DEFAULT_STAGES
    assert [stage.weight for stage in DEFAULT_STAGES] == [1, 5, 10, 25, 50, 75, 100]
    assert sum(stage.min_duration_minutes for stage in DEFAULT_STAGES) == 8 * 60


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


@pytest.mark.parametrize(
    ("items", "field"),
    [
        ([], "stages"),
        ([{"weight": 1}] * (MAX_STAGES + 1), "stages"),
        ([{}], "stages[0].weight"),
        ([{"weight": 0}], "stages[0].weight"),
        ([{"weight": 101}], "stages[0].weight"),
        ([{"weight": True}], "stages[0].weight"),
        ([{"weight": 10.0}], "stages[0].weight"),
        ([{"weight": "10"}], "stages[0].weight"),
        ([{"weight": 10}, {"weight": 10}], "stages[1].weight"),
        ([{"weight": 10}, {"weight": 5}], "stages[1].weight"),
        ([{"weight": 10, "min_duration_minutes": -1}], "stages[0].min_duration_minutes"),
        ([{"weight": 10}, {"weight": 20, "min_requests": 1.5}], "stages[1].min_requests"),
        ([{"weight": 10, "settle_minutes": -1}], "stages[0].settle_minutes"),
        ([{"weight": 10, "settle_minutes": 1.5}], "stages[0].settle_minutes"),
        ([{"weight": 10, "settle_minutes": True}], "stages[0].settle_minutes"),
        ([{"weight": 10, "wait": 3}], "stages[0].wait"),
    ],
)
def test_stages_from__wrong__names_the_field(items: list[dict[str, object]], field: str) -> None:
    with pytest.raises(StageError) as caught:
        stages_from(items)

    assert caught.value.field == field
