from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

from asgiref.sync import SyncToAsync, async_to_sync
from django.conf import settings
from django.db import connections

from analytics.spool.held import settle_held
from analytics.spool.inflight import InflightTable
from core.keys.last_use import flush_last_uses
from core.processes.database_threads import in_database_thread
from core.processes.draining import draining
from gateway.cache.store import ResponseCache
from gateway.judging.judge import grade_overall
from gateway.limits.limiter import Limiter
from gateway.limits.seeding import Seeder
from gateway.models import StoredObject
from gateway.runtime.deadlines import Deadlines
from gateway.runtime.kept_ids import KeptIds
from gateway.runtime.open_requests import OpenRequests
from gateway.runtime.readiness import Readiness
from gateway.runtime.runtime import Runtime
from gateway.runtime.traced_requests import TracedRequests
from gateway.snapshot.announcements import Follower, refresh_regularly
from gateway.snapshot.store import SnapshotStore
from gateway.worker.recording import process_spool
from integrations.health.monitor import HealthMonitor
from integrations.media.fetcher import MediaFetcher
from integrations.transport.access_tokens import AccessTokens
from integrations.transport.factory import create_transport
from integrations.transport.tls import client_context

T = TypeVar("T")

_LAST_USE_SECONDS = _HELD_RECORDS_SECONDS = 60.0

_runtime: Runtime | None = None


def current_runtime() -> Runtime:
    """Makes the runtime on the first call within its running loop: servers may lack the lifespan."""
    global _runtime
    if _runtime is None:
        _runtime = _start()
    return _runtime


async def stop_runtime() -> None:
    global _runtime
    if _runtime is not None:
        runtime, _runtime = _runtime, None
        await runtime.stop()
        runtime.spool.close()


@asynccontextmanager
async def serving_runtime() -> AsyncIterator[Runtime]:
    """Yields the worker's runtime on the worker's event loop.

    Elsewhere (in a command, or in a call that no ASGI server brought) it yields a new runtime that ends with the work.
    """
    if _runtime is not None and _runtime.loop is asyncio.get_running_loop():
        yield _runtime
        return
    runtime = _start()
    try:
        await runtime.limiter.tried()
        yield runtime
    finally:
        await runtime.stop()


def _start() -> Runtime:
    seeder = Seeder(settings.LIMITS_SETTLE_SECONDS)
    spool = process_spool()
    tls, allow_private = client_context(), settings.ALLOW_PRIVATE_UPSTREAMS
    runtime = Runtime(
        snapshots=SnapshotStore(),
        transport=create_transport(settings.UPSTREAM_TRANSPORT, tls=tls, allow_private=allow_private),
        uploads=create_transport("aiohttp", tls=tls, allow_private=allow_private),
        health=HealthMonitor(settings.REDIS_URL),
        media=MediaFetcher(),
        tokens=AccessTokens(allow_private=allow_private),
        spool=spool,
        inflight=InflightTable(settings.SPOOL_DIR),
        open_requests=OpenRequests(settings.REDIS_URL),
        traced_requests=TracedRequests(settings.REDIS_URL),
        limiter=Limiter(
            settings.REDIS_URL,
            workers=settings.WEB_WORKERS,
            lease_seconds=settings.LIMITS_LEASE_SECONDS,
            ahead_seconds=settings.LIMITS_AHEAD_SECONDS,
            timeout=settings.LIMITS_REDIS_SECONDS,
            on_doubt=seeder.doubt,
            log_timeout=settings.LIMITS_LOG_SECONDS,
        ),
        cache=ResponseCache(
            settings.REDIS_URL, max_bytes=settings.CACHE_ANSWER_BYTES, timeout=settings.CACHE_REDIS_SECONDS
        ),
        kept_ids=KeptIds(settings.REDIS_URL),
        deadlines=Deadlines.from_settings(),
        readiness=Readiness(draining, lambda: spool.has_room),
        judge=grade_overall,
        body_bytes=settings.GATEWAY_BODY_BYTES,
        answer_bytes=settings.UPSTREAM_RESPONSE_BYTES,
        loop=asyncio.get_running_loop(),
    )
    follower = Follower(runtime.snapshots)
    keep_running = runtime.keep_running
    keep_running("gateway.follow", follower.follow_projects)
    keep_running("gateway.follow.prices", follower.follow_prices)
    keep_running("gateway.refresh", partial(refresh_regularly, runtime.snapshots))
    keep_running("gateway.health", runtime.health.sync.run)
    keep_running("gateway.health.use", runtime.health.use.follow)
    keep_running("gateway.seeding", partial(seeder.run, runtime.limiter))
    keep_running("gateway.open_requests", runtime.open_requests.run)
    keep_running("gateway.last_use", _flush_last_uses_regularly)
    keep_running("gateway.held_records", _settle_held_records_regularly)
    return runtime


async def _flush_last_uses_regularly() -> None:
    while True:
        await asyncio.sleep(_LAST_USE_SECONDS)
        await in_database_thread(flush_last_uses)


async def _settle_held_records_regularly() -> None:
    while True:
        await in_database_thread(_settle_held_records)
        await asyncio.sleep(_HELD_RECORDS_SECONDS)


def _settle_held_records() -> None:
    settle_held(settings.SPOOL_DIR, lambda name: StoredObject.objects.filter(priced_as=name).exists())


def is_served() -> bool:
    """Returns whether this thread works for a request that came over the event loop of an ASGI server."""
    loop = getattr(SyncToAsync.threadlocal, "main_event_loop", None)
    return loop is not None and loop.is_running()


def on_loop(work: Callable[[Runtime], Coroutine[Any, Any, T]]) -> T:
    """Runs `work` on the worker's event loop for a thread that serves one of its requests.

    It is cancelled if that request's client leaves. Without a server's loop, a loop is made that ends with the work.
    """
    return async_to_sync(_with_runtime if is_served() else _on_passing_loop)(work)


async def _with_runtime(work: Callable[[Runtime], Coroutine[Any, Any, T]]) -> T:
    async with serving_runtime() as runtime:
        return await work(runtime)


async def _on_passing_loop(work: Callable[[Runtime], Coroutine[Any, Any, T]]) -> T:
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1, thread_name_prefix="passing") as thread:
        loop.set_default_executor(thread)
        try:
            return await _with_runtime(work)
        finally:
            # The end of a thread does not close the database connections that the thread has opened.
            await loop.run_in_executor(thread, connections.close_all)
