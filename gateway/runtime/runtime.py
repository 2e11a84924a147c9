from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from analytics.spool.inflight import InflightTable
from analytics.spool.writer import SpoolWriter
from core.keys.last_use import flush_last_uses
from core.processes.background_tasks import keep_running
from core.processes.database_threads import in_database_thread
from gateway.cache.store import ResponseCache
from gateway.limits.limiter import Limiter
from gateway.runtime.deadlines import Deadlines
from gateway.runtime.kept_ids import KeptIds
from gateway.runtime.open_requests import OpenRequests
from gateway.runtime.readiness import Readiness
from gateway.runtime.traced_requests import TracedRequests
from gateway.snapshot.project import ProjectSnapshot
from gateway.snapshot.store import SnapshotStore
from integrations.health.monitor import HealthMonitor
from integrations.media.fetcher import MediaFetcher
from integrations.transport.access_tokens import AccessTokens
from integrations.transport.base import Transport


@dataclass(frozen=True, slots=True)
class OverallGrade:
    """A judge's grade of a whole answer, from 0 to 100, or the `problem` because of which there is none."""

    score: float | None
    problem: str = ""


class Judge(Protocol):
    """Grades `answer`, the assistant's message in reply to `messages`. Never raises for a model's failure."""

    async def __call__(
        self,
        runtime: Runtime,
        snapshot: ProjectSnapshot,
        messages: Iterable[Any],
        answer: Mapping[str, Any],
        *,
        request_id: str,
        seconds: float,
    ) -> OverallGrade: ...


@dataclass(slots=True)
class Runtime:
    """What one worker's requests share. `judge` is injected, because its requests pass the pipeline."""

    snapshots: SnapshotStore
    transport: Transport
    uploads: Transport  # `uploads` reads the bodies of requests from files.
    health: HealthMonitor
    media: MediaFetcher
    tokens: AccessTokens
    spool: SpoolWriter
    inflight: InflightTable
    open_requests: OpenRequests
    traced_requests: TracedRequests
    limiter: Limiter
    cache: ResponseCache
    kept_ids: KeptIds
    deadlines: Deadlines
    readiness: Readiness
    judge: Judge
    body_bytes: int  # `body_bytes` is the maximum size of a request.
    answer_bytes: int  # `answer_bytes` is the maximum size of a provider's answer.
    loop: asyncio.AbstractEventLoop
    tasks: list[asyncio.Task[None]] = field(default_factory=list)
    # The requests that a plan has answered, has left to the stages, and has begun and then left to them.
    planned: int = 0
    declined: int = 0
    handed_over: int = 0

    def keep_running(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Runs `work()` in the background until the end of the runtime, and again whenever it fails."""
        self.tasks.append(keep_running(name, work))

    async def stop(self) -> None:
        """Closes all but the spool, which is the process's. All requests must be over before."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await self.open_requests.close()
        await self.traced_requests.close()
        await self.health.close()
        await self.limiter.close()
        await self.cache.close()
        await self.kept_ids.close()
        await self.media.close()
        await self.transport.close()
        await self.uploads.close()
        self.inflight.close()
        await in_database_thread(flush_last_uses)
