"""Tests of several workers over a real Redis: each learns the outcomes that the others see."""

from __future__ import annotations

import asyncio
import random

import pytest
import redis.asyncio
from django.conf import settings

from integrations.health import store, sync
from integrations.health.keys import CHANNEL, slice_key
from integrations.health.monitor import HealthMonitor
from integrations.health.sync import INTERVAL_SECONDS
from integrations.health.targets import UNKNOWN, CircuitState, Target
from integrations.health.window import slice_of
from integrations.providers.errors import FailureKind
from tests.integrations.health.workers import connected, following, new_target, workers
from tests.waiting import TIMEOUT_SECONDS, eventually

# Changes are to be shared within half a second, which a machine that runs other tests too may exceed.


@pytest.fixture(autouse=True)
def _redis_is_there(stores: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Raises the time-outs for slow machines, since a worker that gives Redis up counts and probes alone."""
    for name in ("ANSWER_SECONDS", "CLAIM_SECONDS"):
        monkeypatch.setattr(store, name, TIMEOUT_SECONDS)
    monkeypatch.setattr(sync, "_FINAL_SEND_SECONDS", TIMEOUT_SECONDS)


def break_circuit(monitor: HealthMonitor, target: Target, times: int = 5) -> None:
    for _ in range(times):
        monitor.note_failure(target, FailureKind.UNAVAILABLE, 10.0)


def circuit(monitor: HealthMonitor, target: Target) -> CircuitState:
    return monitor.health_of(target).circuit


async def test_window__noted_by_several_workers__is_the_same_for_all() -> None:
    chance = random.Random(3)
    target = new_target()
    async with workers(settings.REDIS_URL, 3) as monitors:
        for _ in range(300):
            worker = chance.choice(monitors)
            if chance.random() < 0.1:
                worker.note_failure(target, FailureKind.UNAVAILABLE, 10.0)
            else:
                worker.note_success(target, chance.uniform(50, 5000))
            if chance.random() < 0.05:
                await eventually(lambda: not monitors[0].sync.pending)
        # Every failure and every sample has to arrive exactly once, so that all workers have the figures of one that
        # saw all.
        await eventually(lambda: len({worker.health_of(target) for worker in monitors}) == 1)
        await eventually(lambda: monitors[0].health_of(target).samples > 250)
        first = monitors[0].health_of(target)
        assert first.samples == round(300 * (1 - first.error_share))


async def test_circuit__opened_and_closed_by_one__is_so_for_the_others() -> None:
    target = new_target()
    async with workers(settings.REDIS_URL, 2) as (a, b):
        break_circuit(a, target)
        await eventually(lambda: circuit(b, target) is not CircuitState.CLOSED)

        b.note_success(target, 0.0)
        await eventually(lambda: circuit(a, target) is CircuitState.CLOSED)


async def test_circuit__failures_spread_over_workers__add_up() -> None:
    target = new_target()
    async with workers(settings.REDIS_URL, 3) as monitors:
        for worker, times in zip(monitors, (2, 2, 1), strict=True):
            break_circuit(worker, target, times)

        await eventually(lambda: all(circuit(worker, target) is not CircuitState.CLOSED for worker in monitors))


async def test_circuit__long_retry_after__rests_for_all() -> None:
    target = new_target()
    async with workers(settings.REDIS_URL, 2) as (a, b):
        a.note_failure(target, FailureKind.RATE_LIMITED, 10.0, retry_after=120.0)

        await eventually(lambda: circuit(b, target) is CircuitState.OPEN)


async def test_worker__started_later__loads_the_health_of_requested_targets() -> None:
    warm, broken = new_target(), new_target()
    async with workers(settings.REDIS_URL, 1) as (a,):
        for _ in range(20):
            a.note_success(warm, 100.0)
        break_circuit(a, broken)
        await eventually(lambda: not a.sync.pending)

        async with workers(settings.REDIS_URL, 1) as (b,):
            assert b.health_of(warm) == UNKNOWN
            await eventually(lambda: b.health_of(warm) == a.health_of(warm))
            await eventually(lambda: circuit(b, broken) is not CircuitState.CLOSED)


async def test_worker__started_after_a_circuit_closed__does_not_open_it_for_old_failures() -> None:
    target = new_target()
    async with workers(settings.REDIS_URL, 2) as (a, b):
        break_circuit(a, target)
        a.note_success(target, 0.0)
        await eventually(lambda: circuit(b, target) is CircuitState.CLOSED and not a.sync.pending)

        async with workers(settings.REDIS_URL, 1) as (c,):
            c.note_failure(target, FailureKind.UNAVAILABLE, 10.0)
            await eventually(lambda: c.health_of(target).error_share == pytest.approx(6 / 7))
            assert circuit(c, target) is CircuitState.CLOSED


async def test_worker__that_ends__sends_its_last_updates() -> None:
    target = new_target()
    async with workers(settings.REDIS_URL, 1) as (a,):
        async with workers(settings.REDIS_URL, 1) as (b,):
            b.note_success(target, 100.0)
        await eventually(lambda: a.health_of(target).samples == 1)


async def test_probe__over_all_workers__is_one() -> None:
    target = new_target()
    async with workers(settings.REDIS_URL, 4) as monitors:
        break_circuit(monitors[0], target)
        await eventually(lambda: all(circuit(w, target) is CircuitState.HALF_OPEN for w in monitors))

        claims = await asyncio.gather(*(worker.claim_probe(target) for worker in monitors * 5))
        assert sorted(claims) == [False] * 19 + [True]

        prober = monitors[claims.index(True) % 4]
        prober.note_failure(target, FailureKind.UNAVAILABLE, 0.0)
        await eventually(lambda: all(circuit(w, target) is CircuitState.OPEN for w in monitors))


async def test_probe__refused_for_its_own_fault__passes_to_any_worker() -> None:
    target = new_target()
    async with workers(settings.REDIS_URL, 2) as (a, b):
        break_circuit(a, target)
        await eventually(lambda: circuit(b, target) is CircuitState.HALF_OPEN)
        assert await a.claim_probe(target)
        a.note_failure(target, FailureKind.REJECTED, 10.0)
        await eventually(lambda: not a.sync.pending)

        assert await b.claim_probe(target)


async def test_follow__message_of_another_release__is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    target = new_target()
    async with workers(settings.REDIS_URL, 2) as (a, b), redis.asyncio.Redis.from_url(settings.REDIS_URL) as other:
        await other.publish(CHANNEL, b"\xc1 not ours")
        a.note_success(target, 100.0)

        await eventually(lambda: b.health_of(target).samples == 1)
    assert sum("message.unreadable" in line for line in caplog.messages) == 2


async def test_redis__idle_workers__send_nothing() -> None:
    target = new_target()
    async with workers(settings.REDIS_URL, 2) as monitors, redis.asyncio.Redis.from_url(settings.REDIS_URL) as other:
        monitors[0].note_success(target, 100.0)
        await eventually(lambda: monitors[1].health_of(target).samples == 1)
        await eventually(lambda: not any(worker.sync.pending for worker in monitors))

        before = (await other.info("stats"))["total_commands_processed"]
        # The time is four times the pause between two messages of a busy worker.
        silence = asyncio.get_running_loop().time() + 1.0
        await eventually(
            lambda: monitors[0].health_of(target).samples == 1 and asyncio.get_running_loop().time() > silence
        )
        after = (await other.info("stats"))["total_commands_processed"]
    # The inspecting command itself counts as one.
    assert after - before <= 1


async def test_redis__busy_worker__writes_a_few_times_a_second() -> None:
    target = new_target()
    async with workers(settings.REDIS_URL, 2) as (a, b), redis.asyncio.Redis.from_url(settings.REDIS_URL) as other:
        loop = asyncio.get_running_loop()
        before, started, noted = await published(other), loop.time(), 0
        while noted < 100 or loop.time() < started + 1:
            a.note_success(target, 100.0)
            noted += 1
            await asyncio.sleep(0)
        took = loop.time() - started
        writes = await published(other) - before
        await eventually(lambda: b.health_of(target).samples == noted)
    assert writes <= took / INTERVAL_SECONDS + 2


async def published(client: redis.asyncio.Redis) -> int:
    # Redis does not list a command that was never used.
    calls: int = (await client.info("commandstats")).get("cmdstat_publish", {"calls": 0})["calls"]
    return calls


async def test_redis__everything_written__expires() -> None:
    target = new_target()
    async with workers(settings.REDIS_URL, 2) as (a, b), redis.asyncio.Redis.from_url(settings.REDIS_URL) as other:
        break_circuit(a, target)
        a.note_success(target, 100.0)
        await eventually(lambda: circuit(b, target) is not CircuitState.CLOSED and not a.sync.pending)
        await eventually(lambda: circuit(b, target) is CircuitState.HALF_OPEN)
        await b.claim_probe(target)

        keys = [key async for key in other.scan_iter(f"{{health:{target.integration_id}}}:*")]
        expiries = [await other.ttl(key) for key in keys]
    assert len(keys) >= 4
    assert all(0 < expiry <= 1200 for expiry in expiries)


async def test_redis__names_that_clients_make_up__are_bounded_in_a_slice() -> None:
    integration = new_target().integration_id
    monitor = HealthMonitor(settings.REDIS_URL, max_targets=100)
    first = slice_of(monitor.clock())
    async with following(monitor), redis.asyncio.Redis.from_url(settings.REDIS_URL) as other:
        await connected(monitor)
        for i in range(1000):
            monitor.note_failure(Target(integration, "provider", f"made-up-{i}"), FailureKind.NOT_FOUND, 10.0)
            if i % 50 == 0:
                await eventually(lambda: not monitor.sync.pending)
        await eventually(lambda: not monitor.sync.pending)

        keys = [key async for key in other.scan_iter(f"{{health:{integration}}}:*", count=1000)]
    slices = slice_of(monitor.clock()) - first + 1
    # The additional key is the list of the models.
    assert 100 <= len(keys) <= 100 * slices + 1


async def test_redis__counts__are_hashes_per_target_and_slice() -> None:
    target = new_target("vendor/model:1")
    async with workers(settings.REDIS_URL, 2) as (a, b), redis.asyncio.Redis.from_url(settings.REDIS_URL) as other:
        before = a.clock()
        a.note_success(target, 100.0)
        # The time may pass the border of a slice while the success is noted.
        slices = {slice_of(before), slice_of(a.clock())}
        await eventually(lambda: b.health_of(target).samples == 1)

        keys = [slice_key(target.integration_id, target.model, number) for number in slices]
        found = [value for key in keys for value in (await other.hgetall(key)).values()]
    assert found == [b"1", b"1"]
