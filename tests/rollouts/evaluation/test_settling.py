"""Minutes in which a stage settles or an arm is cold: judged by rates, while latency and cost are only counted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollouts.evaluation import (
    ArmCounts,
    Metric,
    MinuteCounts,
    Policy,
    State,
    Status,
    UserCounts,
    advance,
    assess,
    figures,
    initial_state,
)
from rollouts.evaluation.policy import KEPT_MINUTES, WARMING_REQUESTS
from tests.rollouts.evaluation.minutes import arm, start

VALUES = (Metric.LATENCY_P95, Metric.LATENCY_AVERAGE, Metric.COST)
SLOW = arm(15, ms=(9000,) * 15, usd=("0.9",) * 15)
USUAL = arm(15, ms=(300,) * 15, usd=("0.001",) * 15)


def after(state: State, count: int, target: ArmCounts, baseline: ArmCounts, *, settling: bool) -> State:
    for _ in range(count):
        state = advance(state, MinuteCounts(state.last_minute + 1, 1, 50, target, baseline, settling=settling))
    return state


@pytest.mark.parametrize("sticky", [False, True])
def test_settling__slow_and_dear_target__never_fails_by_latency_or_cost(sticky: bool) -> None:
    users = UserCounts(latency={420: 9}, cost={700: 9}, slow={5: 9}, unanswered={0: 9})
    usual = UserCounts(latency={250: 9}, cost={300: 9}, slow={0: 9}, unanswered={0: 9})
    arms = replace(SLOW, users=users), replace(USUAL, users=usual)

    settling = after(start(sticky=sticky), 200, *arms, settling=True)
    settled = after(start(sticky=sticky), 200, *arms, settling=False)

    for metric in VALUES:
        assert settling.metrics[metric] == start(sticky=sticky).metrics[metric]
        assert assess(settled).metrics[metric].status is Status.FAILING
    assert figures(settling, Metric.LATENCY_P95).target is None


def test_settling__target_that_fails__is_found_by_its_rates() -> None:
    bad = after(start(), 20, arm(15, 5), arm(15), settling=True)
    broken = after(start(), 20, arm(15, contract=5), arm(15), settling=True)

    assert assess(bad).metrics[Metric.ERROR_RATE].status is Status.FAILING
    assert assess(broken).metrics[Metric.CONTRACT].status is Status.FAILING


def test_settling__latencies_and_costs__are_in_the_totals() -> None:
    state = after(start(), 2, SLOW, USUAL, settling=True)

    assert (state.target.latency_ms, state.target.priced, state.target.answered) == (2 * 15 * 9000, 30, 30)
    assert state.target.cost_usd == 2 * SLOW.cost_usd


def test_settling__over__judges_as_if_it_had_not_been() -> None:
    settled = after(after(start(), 30, SLOW, USUAL, settling=True), 100, SLOW, USUAL, settling=False)
    fresh = after(start(), 100, SLOW, USUAL, settling=False)

    for metric in VALUES:
        assert settled.metrics[metric] == fresh.metrics[metric]


def test_settling__ends_within_a_block__leaves_only_the_later_values_in_it() -> None:
    few, after_it = arm(5, ms=(9000,) * 5), arm(10, ms=(300,) * 10)
    state = after(start(), 1, few, arm(5, ms=(300,) * 5), settling=True)
    assert not state.block.empty

    mixed = after(state, 1, after_it, after_it, settling=False)
    whole = after(start(), 1, arm(15, ms=(300,) * 10), arm(15, ms=(300,) * 10), settling=False)

    assert mixed.block.empty
    assert mixed.metrics[Metric.LATENCY_AVERAGE] == whole.metrics[Metric.LATENCY_AVERAGE]
    assert mixed.metrics[Metric.LATENCY_P95] == whole.metrics[Metric.LATENCY_P95]
    assert mixed.metrics[Metric.ERROR_RATE] == whole.metrics[Metric.ERROR_RATE]


def test_settling__no_history__is_not_learned_as_usual() -> None:
    state = initial_state(Policy(), latency={}, cost={}, weights=(50, 100), sticky=False)

    settling = after(state, 20, SLOW, USUAL, settling=True)
    settled = after(settling, 10, USUAL, USUAL, settling=False)

    assert settling.latency == state.latency
    assert settled.latency.reference is not None
    assert settled.latency.reference.cap < 1000


def test_settling__late_rows_of_it__are_judged_by_rates_only() -> None:
    state = advance(after(start(), 1, USUAL, USUAL, settling=False), MinuteCounts(2, 2, 50, USUAL, USUAL))
    before = state.metrics

    state = advance(state, MinuteCounts(3, 1, 50, replace(SLOW, errors=5), USUAL, settling=True))

    assert all(state.metrics[metric] == before[metric] for metric in VALUES)
    assert state.metrics[Metric.ERROR_RATE] != before[Metric.ERROR_RATE]


def _every(minutes: int, target: ArmCounts) -> State:
    """Returns the state after an hour and more in which the target is served every so many minutes."""
    state = start()
    for minute in range(1, 600):
        own = target if minute % minutes == 0 else ArmCounts()
        state = advance(state, MinuteCounts(minute, 1, 50, own, USUAL))
    return state


def test_cold__target_served_too_rarely_for_the_providers_cache__is_judged_by_rates() -> None:
    rare, often = _every(KEPT_MINUTES + 1, SLOW), _every(KEPT_MINUTES, SLOW)

    assert assess(often).metrics[Metric.LATENCY_AVERAGE].status is Status.FAILING
    for metric in VALUES:
        assert rare.metrics[metric] == start().metrics[metric]
    assert assess(_every(KEPT_MINUTES + 1, arm(15, 5))).metrics[Metric.ERROR_RATE].status is Status.FAILING


def test_cold__first_request_after_a_pause__is_counted_and_the_next_minute_judged() -> None:
    state = after(start(), 1, USUAL, USUAL, settling=False)
    pause = replace(state, last_minute=state.last_minute + 60)
    first = after(pause, 1, SLOW, USUAL, settling=False)

    assert first.target.latency_ms == state.target.latency_ms + SLOW.latency_ms
    second = after(first, 1, SLOW, USUAL, settling=False)
    for metric in VALUES:
        assert first.metrics[metric] == state.metrics[metric] != second.metrics[metric]


def test_cold__burst_that_fills_the_cache__is_judged() -> None:
    few, burst = (
        _every(KEPT_MINUTES + 1, arm(count, ms=(9000,) * count)) for count in (WARMING_REQUESTS - 1, WARMING_REQUESTS)
    )

    assert few.metrics[Metric.LATENCY_AVERAGE] == start().metrics[Metric.LATENCY_AVERAGE]
    assert assess(burst).metrics[Metric.LATENCY_AVERAGE].status is Status.FAILING
