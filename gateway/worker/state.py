"""Measures a worker's state once a second, beside its requests, and publishes it to the host's monitor.

`/readyz` and the metrics of workers read this state, so that no request to them waits for a check.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import deque
from typing import TYPE_CHECKING, Any

import msgspec
from asgiref.sync import sync_to_async
from django.db import Error as DatabaseError
from django.db import InterfaceError, connection
from django.db.migrations.executor import MigrationExecutor

from analytics.clickhouse.ledger import is_behind
from analytics.spool.names import worker_token
from core.processes.notices import NoticeWriter, notices_dir, read_notice
from integrations.health.targets import CircuitState

if TYPE_CHECKING:
    # The supervisor reads the states and needs no runtime.
    from gateway.runtime.runtime import Runtime

logger = logging.getLogger("gateway.observation")

WORKER_PREFIX = "web-"
HOST = "host"

_TICK_SECONDS = 0.1
_TICKS_A_LOOK = 10
# The CPU time of a worker without requests from one look to the next is a fifth of this.
_IDLE_CPU_SECONDS = 0.01
# Fifteen looks are kept, so that a scrape every quarter of a minute sees the longest stall since the one before.
_MAX_LAGS = 15
_MAX_CIRCUITS = 200
# The parts of the host's state that concern no single project.
_SHOWN_OF_HOST = ("disk", "spool", "children")
_MAX_BYTES = 64 * 1024


class WorkerState(msgspec.Struct):
    """One worker's own figures.

    `loop_lag_seconds` is the longest of the last 15 seconds; `circuits` lists those that are not closed: integration,
    provider, model, state. Requests that plans have answered, declined and handed over to the stages are counted from
    the worker's start on.
    """

    pid: int
    at: float
    ready: dict[str, bool]
    in_flight: int
    loop_lag_seconds: float
    limits_connected: bool
    cache_connected: bool
    health_connected: bool
    watched_targets: int
    circuits: list[tuple[int, str, str, str]]
    planned: int = 0
    declined: int = 0
    handed_over: int = 0


class WorkerMonitor:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._spent = 0.0
        self._lags: deque[float] = deque([0.0], maxlen=_MAX_LAGS)
        self._notice = NoticeWriter(notices_dir(), f"{WORKER_PREFIX}{worker_token()}", max_bytes=_MAX_BYTES)

    async def run(self) -> None:
        try:
            while True:
                self._look()
                await self._measure()
        finally:
            self._notice.close()

    async def prepare(self) -> None:
        """Both flags, once set, stay true for the life of this process."""
        readiness = self._runtime.readiness
        while not (readiness.migrations_current and readiness.configuration_loaded):
            try:
                if await sync_to_async(migrations_are_current, thread_sensitive=False)():
                    readiness.migrations_current = True
                    await self._runtime.snapshots.load_prices()
                    readiness.configuration_loaded = True
                    continue
            except (DatabaseError, InterfaceError) as error:
                logger.warning("configuration.not_loaded error=%s", type(error).__name__)
            await asyncio.sleep(_TICK_SECONDS * _TICKS_A_LOOK)

    async def prepare_analytics(self) -> None:
        while await sync_to_async(is_behind, thread_sensitive=False)():  # noqa: ASYNC110 - no event comes from a store
            await asyncio.sleep(_TICK_SECONDS * _TICKS_A_LOOK)
        self._runtime.readiness.analytics_migrated = True

    async def _measure(self) -> None:
        loop, max_lag = self._runtime.loop, 0.0
        spent, self._spent = self._spent, time.process_time()
        # Nothing holds up the loop of a worker that does nothing.
        ticks = _TICKS_A_LOOK if self._spent - spent > _IDLE_CPU_SECONDS else 1
        pause = _TICK_SECONDS * _TICKS_A_LOOK / ticks
        for _ in range(ticks):
            asleep = loop.time()
            await asyncio.sleep(pause)
            max_lag = max(max_lag, loop.time() - asleep - pause)
        self._lags.append(max_lag)

    def _look(self) -> None:
        self._notice.put(msgspec.json.encode(self._state()))
        notice = read_notice(notices_dir(), HOST)
        host = _decoded(notice.message) if notice is not None and notice.is_alive else None
        self._runtime.readiness.host = {} if host is None else _shown(host)
        if host is not None and "hosts" in host.found:
            self._share_limits(**host.found["hosts"]["share"])

    def _share_limits(self, workers: int, before: int, pids: list[int]) -> None:
        own = os.getpid()
        # One that has just taken another's place is not listed yet.
        self._runtime.limiter.share_among(workers, before + (pids.index(own) if own in pids else 0))

    def _state(self) -> WorkerState:
        runtime = self._runtime
        return WorkerState(
            pid=os.getpid(),
            at=time.time(),
            ready=runtime.readiness.checks(),
            in_flight=len(runtime.inflight),
            loop_lag_seconds=max(self._lags),
            limits_connected=runtime.limiter.is_connected,
            cache_connected=not runtime.cache.is_away,
            health_connected=runtime.health.connected,
            watched_targets=runtime.health.watched,
            circuits=[
                (target.integration_id, target.provider, target.model, state.value)
                for target, state in runtime.health.circuits(_MAX_CIRCUITS)
                if state is not CircuitState.CLOSED
            ],
            planned=runtime.planned,
            declined=runtime.declined,
            handed_over=runtime.handed_over,
        )


def begin_observation(runtime: Runtime) -> None:
    if runtime.readiness.is_observed:
        return
    runtime.readiness.is_observed = True
    monitor = WorkerMonitor(runtime)
    runtime.keep_running("gateway.prepare", monitor.prepare)
    runtime.keep_running("gateway.prepare.analytics", monitor.prepare_analytics)
    runtime.keep_running("gateway.observation", monitor.run)


def migrations_are_current() -> bool:
    """Returns whether every migration of this code has been applied; migrations of later code may be applied too."""
    try:
        executor = MigrationExecutor(connection)
        return not executor.migration_plan(executor.loader.graph.leaf_nodes())
    finally:
        connection.close()


class _HostState(msgspec.Struct):
    stores: dict[str, dict[str, Any]] = {}
    found: dict[str, dict[str, Any]] = {}
    alarms: list[str] = []


_host_decoder = msgspec.json.Decoder(_HostState)


def _decoded(message: bytes) -> _HostState | None:
    try:
        return _host_decoder.decode(message)
    except msgspec.DecodeError:
        return None


def _shown(host: _HostState) -> dict[str, Any]:
    shown = {name: host.found[name] for name in _SHOWN_OF_HOST if name in host.found}
    return {"stores": host.stores, **shown, "alarms": host.alarms}
