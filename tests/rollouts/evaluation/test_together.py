"""Both arms together against the config's day before the start, and against the blocks before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollouts.evaluation import (
    Action,
    ArmCounts,
    Decision,
    Policy,
    Reason,
    State,
    Verdict,
    advance,
    at_stage,
    decide,
    initial_state,
)
from rollouts.evaluation.counts import MinuteCounts
from rollouts.states import Stage
from tests.rollouts.evaluation.minutes import after_minutes, arm

STAGE = Stage(25, 30, 20)
CLEAN, WELL, FEW, ILL, OUT = (arm(60, unanswered, units=0) for unanswered in (0, 2, 1, 8, 60))
"""Arms that leave nothing, 3.3 %, 1.7 % and 13.3 % unanswered, and one in an outage."""


def begun(unanswered: int = 300, requests: int = 10_000, *, policy: Policy | None = None) -> State:
    """Returns a rollout whose first ten blocks left nothing unanswered."""
    return after(unbegun(unanswered, requests, policy=policy), 10, CLEAN)


def unbegun(unanswered: int = 300, requests: int = 10_000, *, policy: Policy | None = None) -> State:
    return initial_state(
        policy or Policy(),
        latency={},
        cost={},
        weights=(25, 75, 100),
        sticky=False,
        usual_unanswered=(unanswered, requests),
    )


def after(state: State, count: int, both: ArmCounts, *, stage: int = 1, weight: int = 25) -> State:
    return after_minutes(state, count, both, both, stage=stage, weight=weight)


def verdict(state: State, stage: Stage = STAGE, elapsed: float = 60) -> Verdict:
    return decide(state, stage, elapsed_minutes=elapsed)


def test_decide__both_arms_worse_than_the_day_before__holds_and_says_so() -> None:
    found = verdict(after(begun(), 40, ILL))

    assert (found.decision, found.reason) == (Decision.WAIT, Reason.WORSE_FOR_ALL)
    assert "10.7 % in this stage, 3.0 % on the day before" in found.explanation


def test_decide__worse_than_the_day_before_from_the_start_on__holds_nothing_at_any_weight() -> None:
    state = after(unbegun(), 40, ILL)
    assert verdict(state).decision is Decision.PROMOTE

    state = after(state, 40, ILL, stage=2, weight=75)
    assert verdict(state, Stage(75, 30, 20)).reason is not Reason.WORSE_FOR_ALL
    assert verdict(after(state, 40, ILL, stage=3, weight=100), Stage(100, 30, 0)).decision is Decision.PROMOTE


def test_decide__worse_with_the_weight__holds() -> None:
    state = after(after(unbegun(), 40, WELL), 40, ILL, stage=2, weight=75)

    assert verdict(state, Stage(75, 30, 20)).reason is Reason.WORSE_FOR_ALL


@pytest.mark.parametrize(
    ("usd", "weight", "holds"),
    [("0.04", 50, True), ("0.02", 11, True), ("0.02", 10, False), ("0.012", 60, False), ("0.01", 50, False)],
    ids=["four times", "twice, as much as is unanswered", "twice, less than that", "a fifth", "the same"],
)
def test_decide__worse_from_the_start_on__holds_if_the_cost_of_the_target_explains_it(
    usd: str, weight: int, holds: bool
) -> None:
    """Of all requests 10.3 % more go unanswered than on the day before."""
    policy = Policy(cost_per_request=Action.IGNORE)
    target, baseline = (arm(60, 8, units=0, usd=[one] * 52) for one in (usd, "0.01"))
    state = after_minutes(replace(unbegun(policy=policy), weights=(weight, 100)), 40, target, baseline, weight=weight)

    assert (verdict(state, Stage(weight, 30, 20)).reason is Reason.WORSE_FOR_ALL) == holds


def test_decide__everything_fails_in_both_arms__never_rolls_back() -> None:
    found = verdict(after_minutes(begun(), 100, arm(30, 28, units=0), arm(30, 28, units=0), weight=25))

    assert found.decision is Decision.WAIT


@pytest.mark.parametrize(
    ("state", "holds"),
    [
        (after(begun(), 40, WELL), False),
        (after(begun(700, 10_000), 40, ILL), False),
        (after(begun(50, 10_000), 40, FEW), False),
        (after(begun(9, 29), 40, ILL), False),
        (after(begun(0, 29), 40, ILL), False),
        (after(begun(0, 30), 40, ILL), True),
        (after(begun(policy=Policy(unanswered=Action.IGNORE)), 40, ILL), False),
    ],
    ids=[
        "as usual",
        "below twice",
        "below two points",
        "a short day",
        "a short and clean day",
        "a clean day",
        "ignored",
    ],
)
def test_decide__both_arms_alike__holds_only_where_it_is_clearly_worse_than_usual(state: State, holds: bool) -> None:
    found = verdict(state)

    assert (found.decision is Decision.WAIT, found.reason is Reason.WORSE_FOR_ALL) == (holds, holds)


def test_decide__outage_of_a_quarter_of_an_hour__holds_nothing_after_half_an_hour() -> None:
    state = after(after(begun(), 15, WELL), 15, OUT)
    assert verdict(state).decision is Decision.PROMOTE

    assert verdict(after(state, 15, WELL)).decision is Decision.PROMOTE


def test_decide__worse_for_long_and_then_as_before__is_let_go_after_as_long_again() -> None:
    state = after(begun(), 60, ILL)

    held = []
    for _ in range(60):
        state = after(state, 1, WELL)
        held.append(verdict(state).reason is Reason.WORSE_FOR_ALL)

    assert held == [True] * 59 + [False]


def test_decide__well_for_moments_while_it_is_worse__stays_held() -> None:
    state = after(begun(), 60, ILL)

    for _ in range(5):
        state = after(after(state, 15, WELL), 15, ILL)
        assert verdict(state).reason is Reason.WORSE_FOR_ALL


def test_decide__minima_unmet__waits_for_them_first() -> None:
    assert verdict(after(begun(), 20, ILL), elapsed=20).reason is Reason.MINIMUM_DURATION


def test_decide__worse_at_100_percent__does_not_complete() -> None:
    state = after(begun(), 40, WELL, stage=2, weight=75)
    state = after_minutes(state, 60, ILL, arm(0), stage=3, weight=100)
    last = Stage(100, 60, 0)

    assert verdict(state, last).reason is Reason.WORSE_FOR_ALL
    assert verdict(after_minutes(state, 60, WELL, arm(0), stage=3, weight=100), last).decision is Decision.PROMOTE


def test_advance__next_stage__forgets_the_blocks_of_the_one_before() -> None:
    state = after(begun(), 40, ILL)

    assert not at_stage(state, 2).together.is_worse
    state = after(state, 2, ILL, stage=2, weight=75)
    assert state.together.blocks == 2
    assert not state.together.is_worse
    assert after(state, 1, ILL, stage=2, weight=75).together.is_worse


def test_advance__late_rows_of_an_earlier_stage__are_not_of_this_one() -> None:
    state = after(unbegun(), 5, WELL, stage=2, weight=75)

    state = advance(state, MinuteCounts(6, 1, 25, OUT, OUT))

    assert (state.together.blocks, state.together.worse) == (5, 0)


def test_advance__few_requests__are_counted_by_their_blocks() -> None:
    state = after(unbegun(), 40, arm(2, 1))

    assert (state.together.blocks, state.together.worse) == (5, 0b11111)


def test_advance__requests_beside_a_warm_cache__count_for_the_config() -> None:
    """They are not compared, and somebody is refused them all the same."""
    alike = replace(WELL, uncompared=60, uncompared_unanswered=12)

    assert verdict(after(begun(), 40, alike)).reason is Reason.WORSE_FOR_ALL
