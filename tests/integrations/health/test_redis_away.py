"""Tests the shared health of targets while Redis hangs, dies and comes back, on a server that only these tests use."""

from __future__ import annotations

import asyncio
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis.asyncio
from pytest_django import Settings

from integrations.health import store
from integrations.health.monitor import HealthMonitor
from integrations.health.targets import CircuitState, Target
from integrations.providers.errors import FailureKind
from tests.integrations.health.workers import following, new_target, workers
from tests.services import Service, start_redis
from tests.waiting import TIMEOUT_SECONDS, eventually

# A worker notices within a second that Redis does not answer; noticing its return takes up to six seconds.
_NOTICED_SECONDS = store.ANSWER_SECONDS


class Redis:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._starts = 0
        self._service: Service
        self.url = ""
        self.start()

    def start(self) -> None:
        """Starts an empty server at the same address."""
        self._starts += 1
        self._service, url = start_redis(self._folder / str(self._starts))
        socket = Path(url.removeprefix("unix://"))
        fixed = self._folder / "redis.sock"
        fixed.unlink(missing_ok=True)
        fixed.symlink_to(socket)
        self.url = f"unix://{fixed}"

    def send(self, sent: signal.Signals) -> None:
        self._service.send(sent)

    def stop(self) -> None:
        self._service.send(signal.SIGCONT)
        self._service.stop(signal.SIGKILL)


@pytest.fixture
def server() -> Iterator[Redis]:
    folder = Path(tempfile.mkdtemp(prefix="gwh-", dir="/tmp"))
    started = Redis(folder)
    yield started
    started.stop()
    shutil.rmtree(folder)


@pytest.fixture(autouse=True)
def _long_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raises the time-outs, so that a slow machine does not make an answering Redis count as absent."""
    monkeypatch.setattr(store, "ANSWER_SECONDS", TIMEOUT_SECONDS)


@contextmanager
def _hanging(server: Redis) -> Iterator[None]:
    """Stops the server's answers, and lowers the time-out, so that a worker notices that within a second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "ANSWER_SECONDS", _NOTICED_SECONDS)
        server.send(signal.SIGSTOP)
        yield
    server.send(signal.SIGCONT)


def break_circuit(monitor: HealthMonitor, target: Target) -> None:
    for _ in range(5):
        monitor.note_failure(target, FailureKind.UNAVAILABLE, 10.0)


async def test_redis_hangs__requests__go_on_from_memory_and_are_shared_later(
    server: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "integrations.health")
    warm, broken = new_target(), new_target()
    async with workers(server.url, 2) as (a, b):
        a.note_success(warm, 100.0)
        await eventually(lambda: b.health_of(warm).samples == 1)

        with _hanging(server):
            a.note_success(warm, 100.0)
            break_circuit(a, broken)
            assert a.health_of(broken).circuit is CircuitState.OPEN
            await eventually(lambda: not a.connected)
            a.note_success(warm, 100.0)
            assert a.health_of(warm).samples == 3
            await eventually(lambda: a.health_of(broken).circuit is CircuitState.HALF_OPEN)
            # The worker makes no call to Redis after it has noticed that Redis does not answer.
            assert await a.claim_probe(broken)
            assert not await a.claim_probe(broken)

        await eventually(lambda: a.connected and b.connected)
        await eventually(lambda: a.health_of(warm) == b.health_of(warm) and b.health_of(warm).samples == 3)
        await eventually(lambda: b.health_of(broken).circuit is not CircuitState.CLOSED)
    lines = [line for line in caplog.messages if line.startswith("redis.")]
    # Worker b had nothing to send, and may not have noticed that Redis was away.
    assert lines.count("redis.away error=TimeoutError") == lines.count("redis.back")
    assert 1 <= lines.count("redis.back") <= 2


async def test_redis_hangs__claim_of_a_probe__does_not_wait_for_it(server: Redis) -> None:
    target = new_target()
    async with workers(server.url, 1) as (a,):
        break_circuit(a, target)
        await eventually(lambda: not a.sync.pending)
        await eventually(lambda: a.health_of(target).circuit is CircuitState.HALF_OPEN)

        with _hanging(server):
            # The claims end although Redis does not answer and no earlier call has found that out.
            claims = await asyncio.gather(*(a.claim_probe(target) for _ in range(5)))
            assert sorted(claims) == [False] * 4 + [True]
            assert not a.connected

        await eventually(lambda: a.connected)


async def test_redis_dies__and_a_new_empty_one_comes__workers_find_each_other_again(
    server: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "integrations.health")
    target = new_target()
    async with workers(server.url, 2) as monitors:
        a, b = monitors
        a.note_success(target, 100.0)
        await eventually(lambda: b.health_of(target).samples == 1)

        server.stop()
        await eventually(lambda: not a.connected and not b.connected)
        for _ in range(10):
            a.note_success(target, 100.0)
        server.start()
        await eventually(lambda: a.connected and b.connected)

        await eventually(lambda: b.health_of(target).samples >= 10)
    lines = [line.partition(" ")[0] for line in caplog.messages if line.startswith("redis.")]
    assert sorted(lines) == ["redis.away", "redis.away", "redis.back", "redis.back"]


async def test_redis_hangs__worker_without_updates__notices_too(
    server: Redis, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.REDIS_PING_SECONDS = 0.1
    # The wait for a message has the time limit from its start on.
    monkeypatch.setattr(store, "ANSWER_SECONDS", _NOTICED_SECONDS)
    async with workers(server.url, 1) as (a,):
        with _hanging(server):
            await eventually(lambda: not a.connected)

        await eventually(lambda: a.connected)


async def test_subscription__silent_but_alive__stays(
    server: Redis, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.REDIS_PING_SECONDS = 0.05
    target = new_target()
    async with workers(server.url, 2) as (a, b), redis.asyncio.Redis.from_url(server.url) as other:
        pinged = 0
        while pinged < 10:
            pinged = (await other.info("commandstats")).get("cmdstat_ping", {"calls": 0})["calls"]
        a.note_success(target, 100.0)
        await eventually(lambda: b.health_of(target).samples == 1)
    assert not [line for line in caplog.messages if "redis." in line]


async def test_subscription__cut__is_noticed_and_what_was_missed_is_read(
    server: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "integrations.health")
    target = new_target()
    async with workers(server.url, 2) as (a, b), redis.asyncio.Redis.from_url(server.url) as other:
        a.note_success(target, 100.0)
        await eventually(lambda: b.health_of(target).samples == 1)
        await other.client_kill_filter(_type="pubsub")
        a.note_success(target, 100.0)
        await eventually(lambda: caplog.messages.count("redis.back") == 2)

        await eventually(lambda: b.health_of(target).samples == 2)


async def test_redis__away_from_the_start__works_from_memory_and_logs_it_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    target = new_target()
    async with following(HealthMonitor("unix:///nowhere/at/all.sock")) as monitor:
        await eventually(lambda: any("redis.away" in line for line in caplog.messages))
        break_circuit(monitor, target)
        assert monitor.health_of(target).circuit is CircuitState.OPEN
        await eventually(lambda: monitor.health_of(target).circuit is CircuitState.HALF_OPEN)
        assert [await monitor.claim_probe(target) for _ in range(3)] == [True, False, False]
    assert sum("redis.away" in line for line in caplog.messages) == 1
