"""Tests of a single worker's monitor with a fake clock and without Redis."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from integrations.health.monitor import MAX_MODEL_CHARACTERS, PROBE_SECONDS, HealthMonitor
from integrations.health.targets import UNKNOWN, CircuitState, Target
from integrations.health.window import WINDOW_SECONDS
from integrations.providers.errors import FailureKind
from tests.integrations.health.workers import new_target


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def monitor(clock: Clock) -> HealthMonitor:
    return HealthMonitor("unix:///nowhere", clock=clock, draw=lambda: 0.0)


def break_circuit(monitor: HealthMonitor, target: Target, times: int = 5) -> None:
    for _ in range(times):
        monitor.note_failure(target, FailureKind.UNAVAILABLE, 10.0)


def test_health__nothing_noted__is_unknown(monitor: HealthMonitor) -> None:
    assert monitor.health_of(new_target()) == UNKNOWN


def test_health__each_note__shows_at_once(monitor: HealthMonitor) -> None:
    target = new_target()
    for i in range(1, 200):
        monitor.note_success(target, 100.0)
        if i <= 50:
            assert monitor.health_of(target).samples == i


def test_health__many_samples__are_added_up_when_some_time_has_passed(monitor: HealthMonitor, clock: Clock) -> None:
    target = new_target()
    for _ in range(100):
        monitor.note_success(target, 100.0)
    monitor.health_of(target)
    monitor.note_success(target, 100.0)
    clock.now += 0.3

    assert monitor.health_of(target).samples == 101


def test_health__percentiles__are_those_noted(monitor: HealthMonitor) -> None:
    target = new_target()
    for latency in range(1, 1001):
        monitor.note_success(target, float(latency))

    health = monitor.health_of(target)
    assert (health.p50_ms, health.p95_ms, health.p99_ms) == pytest.approx((500, 950, 990), rel=0.051)


def test_health__failures__count_as_outcomes_without_latency(monitor: HealthMonitor) -> None:
    target = new_target()
    for _ in range(8):
        monitor.note_success(target, 100.0)
    monitor.note_failure(target, FailureKind.UNAVAILABLE, 5.0)
    monitor.note_failure(target, FailureKind.RATE_LIMITED, 5.0)

    health = monitor.health_of(target)
    assert (health.samples, health.error_share, health.degraded) == (8, 0.2, True)


def test_health__time_outs__are_slow_samples(monitor: HealthMonitor) -> None:
    target = new_target()
    for _ in range(3):
        monitor.note_failure(target, FailureKind.TIMEOUT, 30_000.0)

    health = monitor.health_of(target)
    assert (health.samples, health.error_share) == (3, 1.0)
    assert health.p50_ms == pytest.approx(30_000, rel=0.051)


def test_health__rejected_requests__leave_no_trace(monitor: HealthMonitor) -> None:
    target = new_target()
    for _ in range(50):
        monitor.note_failure(target, FailureKind.REJECTED, 5.0)

    assert monitor.health_of(target) == UNKNOWN


def test_health__few_failures__do_not_degrade(monitor: HealthMonitor) -> None:
    target = new_target()
    for _ in range(90):
        monitor.note_success(target, 100.0)
    for _ in range(9):
        monitor.note_failure(target, FailureKind.UNAVAILABLE, 5.0)

    assert not monitor.health_of(target).degraded


def test_health__clock_set_back__is_read_anew(monitor: HealthMonitor, clock: Clock) -> None:
    target = new_target()
    monitor.note_success(target, 100.0)
    monitor.health_of(target)
    clock.now -= 86_400
    monitor.note_success(target, 100.0)

    assert monitor.health_of(target).samples == 1


def test_health__circuit__follows_the_clock(monitor: HealthMonitor, clock: Clock) -> None:
    target = new_target()
    break_circuit(monitor, target)
    assert monitor.health_of(target).circuit is CircuitState.OPEN

    clock.now += 5
    assert monitor.health_of(target).circuit is CircuitState.HALF_OPEN

    clock.now += 1
    monitor.note_success(target, 500.0)
    assert monitor.health_of(target).circuit is CircuitState.CLOSED


def test_health__open_circuit__is_of_that_model_and_integration_alone(monitor: HealthMonitor) -> None:
    target = new_target()
    break_circuit(monitor, target)

    assert monitor.health_of(target._replace(model="other")).circuit is CircuitState.CLOSED
    assert monitor.health_of(target._replace(integration_id=5)).circuit is CircuitState.CLOSED


def test_health__names_that_clients_make_up__crowd_out_only_what_is_quiet(clock: Clock) -> None:
    monitor = HealthMonitor("unix:///nowhere", clock=clock, max_targets=10)
    busy, quiet = new_target(), new_target()
    monitor.note_success(quiet, 100.0)
    for i in range(100):
        monitor.note_success(busy, 100.0)
        monitor.note_failure(busy._replace(model=f"made-up-{i}"), FailureKind.NOT_FOUND, 10.0)
        monitor.health_of(busy._replace(model=f"only-asked-for-{i}"))

    assert monitor.watched == 10
    assert monitor.health_of(busy).samples == 100
    assert monitor.health_of(quiet) == UNKNOWN


def test_health__name_too_long_to_be_a_model__is_not_watched(monitor: HealthMonitor) -> None:
    target = new_target("x" * (MAX_MODEL_CHARACTERS + 1))
    monitor.note_success(target, 100.0)
    break_circuit(monitor, target)

    assert monitor.health_of(target) == UNKNOWN
    assert monitor.watched == 0


async def test_probe__of_one_worker_without_redis__is_one_a_time(monitor: HealthMonitor, clock: Clock) -> None:
    target = new_target()
    break_circuit(monitor, target)
    assert not await monitor.claim_probe(target)

    clock.now += 5
    assert [await monitor.claim_probe(target) for _ in range(3)] == [True, False, False]

    clock.now += PROBE_SECONDS
    assert [await monitor.claim_probe(target) for _ in range(3)] == [True, False, False]


async def test_probe__after_the_last_one_failed__waits_for_the_longer_rest(
    monitor: HealthMonitor, clock: Clock
) -> None:
    target = new_target()
    break_circuit(monitor, target)
    clock.now += 5
    assert await monitor.claim_probe(target)
    monitor.note_failure(target, FailureKind.UNAVAILABLE, 10.0)

    assert monitor.health_of(target).circuit is CircuitState.OPEN
    clock.now += 9.9
    assert not await monitor.claim_probe(target)
    clock.now += 0.2
    assert await monitor.claim_probe(target)


async def test_probe__that_was_refused_for_its_own_fault__lets_the_next_one_try(
    monitor: HealthMonitor, clock: Clock
) -> None:
    target = new_target()
    break_circuit(monitor, target)
    clock.now += 5
    assert await monitor.claim_probe(target)
    monitor.note_failure(target, FailureKind.REJECTED, 10.0)

    assert monitor.health_of(target).circuit is CircuitState.HALF_OPEN
    assert await monitor.claim_probe(target)


@pytest.mark.parametrize("known", [True, False])
async def test_probe__of_a_closed_circuit__is_allowed_to_all(monitor: HealthMonitor, known: bool) -> None:
    target = new_target()
    if known:
        monitor.note_success(target, 100.0)

    assert [await monitor.claim_probe(target) for _ in range(3)] == [True] * 3


@pytest.mark.parametrize(
    "note",
    [lambda m, t: m.note_success(t, 100.0), lambda m, t: m.note_failure(t, FailureKind.UNAVAILABLE, 100.0)],
    ids=["success", "failure"],
)
def test_window__years_of_notes_while_redis_is_away__stay_bounded(
    monitor: HealthMonitor, clock: Clock, note: Callable[[HealthMonitor, Target], None]
) -> None:
    target = new_target()
    for _ in range(1000):
        note(monitor, target)
        clock.now += WINDOW_SECONDS / 5

    assert monitor.health_of(target).samples <= 5
