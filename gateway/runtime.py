"""What one web worker holds for as long as it lives: snapshots, connections to providers, the spool."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from asgiref.sync import sync_to_async
from django.conf import settings

from analytics.spool.inflight import InflightTable
from analytics.spool.writer import SpoolWriter
from core.draining import draining
from core.last_use import flush_last_uses
from gateway.cache.store import ResponseCache
from gateway.deadlines import Deadlines
from gateway.limits.limiter import Limiter
from gateway.limits.seeding import Seeder
from gateway.open_requests import OpenRequests
from gateway.readiness import Readiness
from gateway.snapshot.announcements import follow, refresh_regularly
from gateway.snapshot.store import SnapshotStore
from integrations.access_tokens import AccessTokens
from integrations.health.monitor import HealthMonitor
from integrations.media.fetcher import MediaFetcher
from integrations.transport.base import Transport
from integrations.transport.factory import create_transport

logger = logging.getLogger("gateway.runtime")

_LAST_USE_SECONDS = 60.0


@dataclass(slots=True)
class Runtime:
    snapshots: SnapshotStore
    transport: Transport
    health: HealthMonitor
    media: MediaFetcher
    tokens: AccessTokens
    spool: SpoolWriter
    inflight: InflightTable
    open_requests: OpenRequests
    limiter: Limiter
    cache: ResponseCache
    deadlines: Deadlines
    readiness: Readiness
    body_bytes: int  # the largest request
    answer_bytes: int  # the largest answer of a provider
    loop: asyncio.AbstractEventLoop
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def watch_over(self, task: asyncio.Task[None]) -> None:
        """It ends with the runtime, and the log says if it fails before."""
        self.tasks.append(task)
        task.add_done_callback(_report_end)

    async def stop(self) -> None:
        """Ends the background work and closes what is open; requests have to be over by now."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await self.open_requests.close()
        await self.health.close()
        await self.limiter.close()
        await self.cache.close()
        await self.media.close()
        await self.transport.close()
        self.spool.close()
        self.inflight.close()
        await sync_to_async(flush_last_uses, thread_sensitive=False)()


_runtime: Runtime | None = None


def current_runtime() -> Runtime:
    """The worker's runtime, made on the first call within its running loop (servers without lifespan need no more)."""
    global _runtime
    if _runtime is None:
        _runtime = _start()
    return _runtime


async def stop_runtime() -> None:
    global _runtime
    if _runtime is not None:
        runtime, _runtime = _runtime, None
        await runtime.stop()


@asynccontextmanager
async def serving_runtime() -> AsyncIterator[Runtime]:
    """The worker's, on its loop. On another one (a command's, or that of a call that no ASGI server brought) a runtime
    that ends with the work."""
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
    spool = SpoolWriter(
        settings.SPOOL_DIR,
        segment_bytes=settings.SPOOL_SEGMENT_BYTES,
        reserve_bytes=settings.SPOOL_RESERVE_BYTES,
        queue_bytes=settings.SPOOL_QUEUE_BYTES,
    )
    runtime = Runtime(
        snapshots=SnapshotStore(),
        transport=create_transport(settings.UPSTREAM_TRANSPORT, allow_private=settings.ALLOW_PRIVATE_UPSTREAMS),
        health=HealthMonitor(settings.REDIS_URL),
        media=MediaFetcher(),
        tokens=AccessTokens(allow_private=settings.ALLOW_PRIVATE_UPSTREAMS),
        spool=spool,
        inflight=InflightTable(settings.SPOOL_DIR),
        open_requests=OpenRequests(settings.REDIS_URL),
        limiter=Limiter(
            settings.REDIS_URL,
            workers=settings.WEB_WORKERS,
            lease_seconds=settings.LIMITS_LEASE_SECONDS,
            patience=settings.LIMITS_REDIS_SECONDS,
            on_doubt=seeder.doubt,
            log_patience=settings.LIMITS_LOG_SECONDS,
        ),
        cache=ResponseCache(
            settings.REDIS_URL, max_bytes=settings.CACHE_ANSWER_BYTES, patience=settings.CACHE_REDIS_SECONDS
        ),
        deadlines=Deadlines.from_settings(),
        readiness=Readiness(draining, lambda: spool.has_room),
        body_bytes=settings.GATEWAY_BODY_BYTES,
        answer_bytes=settings.UPSTREAM_RESPONSE_BYTES,
        loop=asyncio.get_running_loop(),
    )
    for task in (
        asyncio.create_task(follow(runtime.snapshots), name="gateway.follow"),
        asyncio.create_task(refresh_regularly(runtime.snapshots), name="gateway.refresh"),
        asyncio.create_task(runtime.health.follow(), name="gateway.health"),
        asyncio.create_task(seeder.run(runtime.limiter), name="gateway.seeding"),
        asyncio.create_task(runtime.open_requests.run(), name="gateway.open_requests"),
        asyncio.create_task(_flush_last_uses_regularly(), name="gateway.last_use"),
    ):
        runtime.watch_over(task)
    return runtime


def _report_end(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        logger.error("background_task.failed name=%s", task.get_name(), exc_info=task.exception())


async def _flush_last_uses_regularly() -> None:
    while True:
        await asyncio.sleep(_LAST_USE_SECONDS)
        await sync_to_async(flush_last_uses, thread_sensitive=False)()
