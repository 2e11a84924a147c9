"""Simulates an hour of traffic with `sort: latency`, without waiting; the random numbers are seeded, so that every run
is the same."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

from integrations.health.monitor import HealthMonitor
from integrations.health.order import PROBE_SHARE, order_by_latency
from integrations.health.targets import CircuitState, Target
from integrations.health.window import WINDOW_SECONDS
from integrations.providers.errors import FailureKind

A, B, C = (Target(i, provider, "model") for i, provider in enumerate(["first", "second", "third"], start=1))

# An upstream is a function from seconds since the start to a latency in ms, or to None for a failure.
Upstream = Callable[[float], float | None]


class Simulation:
    """A simulation of four requests a second, which may overlap."""

    def __init__(self, upstreams: dict[Target, Upstream]) -> None:
        self.chance = random.Random(11)
        self.now = 1_700_000_000.0
        self.started = self.now
        self.upstreams = upstreams
        self.monitor = HealthMonitor("unix:///nowhere", clock=lambda: self.now, draw=self.chance.random)

    def run(self, seconds: float) -> Counter[Target]:
        """Returns the number of requests that each target answered or failed first."""
        first: Counter[Target] = Counter()
        end = self.now + seconds
        while self.now < end:
            first[self._request()] += 1
            self.now += 0.25
        return first

    def _request(self) -> Target:
        ordered = order_by_latency(list(self.upstreams), self.monitor.health_of, self.chance.random())
        for target in ordered:
            latency = self.upstreams[target](self.now - self.started)
            if latency is None:
                self.monitor.note_failure(target, FailureKind.UNAVAILABLE, 20.0)
                continue
            self.monitor.note_success(target, latency * self.chance.uniform(0.8, 1.25))
            break
        return ordered[0]


def steady(latency: float) -> Upstream:
    return lambda at: latency


def test_simulation__one_becomes_slow__loses_the_traffic() -> None:
    run = Simulation({A: lambda at: 100.0 if at < 600 else 3000.0, B: steady(300.0)})

    before = run.run(600)
    run.run(WINDOW_SECONDS)
    after = run.run(600)

    assert before[A] > 0.9 * before.total()
    assert after[B] > 0.9 * after.total()


def test_simulation__slow_one_recovers__gets_its_traffic_back() -> None:
    run = Simulation({A: lambda at: 100.0 if not 600 < at < 1800 else 3000.0, B: steady(300.0)})

    run.run(1800)
    run.run(2 * WINDOW_SECONDS)
    after = run.run(600)

    assert after[A] > 0.9 * after.total()


def test_simulation__unknown_one_beside_a_warm_one__is_probed_until_known() -> None:
    run = Simulation({A: steady(300.0)})
    run.run(300)
    run.upstreams[B] = steady(100.0)

    early = run.run(15)
    run.run(45)
    late = run.run(600)

    assert 0 < early[B] < early.total() * 3 * PROBE_SHARE
    assert late[B] > 0.9 * late.total()


def test_simulation__unused_slower_ones__are_tried_again_once_a_window() -> None:
    run = Simulation({A: steady(100.0), B: steady(500.0), C: steady(700.0)})
    run.run(600)

    hour = run.run(3600)

    # A target is tried until its window holds five samples, and requests in flight meanwhile add a few more.
    windows = 3600 / WINDOW_SECONDS
    assert windows * 3 <= hour[B] <= windows * 10
    assert windows * 3 <= hour[C] <= windows * 10


def test_simulation__single_outliers__change_nothing() -> None:
    outliers = {400.0: 60_000.0, 700.0: 60_000.0}
    run = Simulation({A: lambda at: outliers.get(at, 100.0), B: steady(140.0)})
    run.run(390)

    order = []
    for _ in range(2000):
        run.run(0.25)
        order.append(order_by_latency([A, B], run.monitor.health_of, draw=0.99)[0])

    assert set(order) == {A}


def test_simulation__single_lucky_sample_of_a_slow_one__does_not_capture_the_traffic() -> None:
    run = Simulation({A: steady(200.0), B: steady(2000.0)})
    run.run(600)
    run.monitor.note_success(B, 1.0)

    assert order_by_latency([B, A], run.monitor.health_of, draw=0.99)[0] is A
    run.now += WINDOW_SECONDS / 2
    for _ in range(10):
        run.monitor.note_success(A, 200.0)
    assert order_by_latency([B, A], run.monitor.health_of, draw=0.99)[0] is A


def test_simulation__samples__age_out() -> None:
    run = Simulation({A: steady(100.0)})
    run.run(60)
    assert run.monitor.health_of(A).samples == 240

    run.now += WINDOW_SECONDS

    assert run.monitor.health_of(A).samples == 0
    assert run.monitor.health_of(A).p50_ms is None


def test_simulation__outage__circuit_spares_the_target_and_finds_it_again() -> None:
    attempts: list[float] = []

    def broken(at: float) -> float | None:
        attempts.append(at)
        return None if 300 <= at < 900 else 50.0

    run = Simulation({A: broken, B: steady(200.0)})
    run.run(300)
    run.run(30)
    attempts.clear()
    run.run(570)
    during = len(attempts)
    run.run(2 * WINDOW_SECONDS)
    after = run.run(300)

    # There is one probe for each opening of the circuit, and an opening lasts a minute by then, so 570 seconds hold
    # about ten.
    assert during < 60
    assert run.monitor.health_of(A).circuit is CircuitState.CLOSED
    assert after[A] > 0.85 * after.total()
