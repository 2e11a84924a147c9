"""Announces in Redis which requests of the gateway began in traces of applications, before their records are stored.

A span's call of a model counts in its rollout, unless a request of the gateway began in that span, which is recorded
anyway (`gateway/prompt_fetch/outcomes.py`). The span may arrive before the record, while the shipper lags behind. So
each worker announces such requests as they begin, in the background. A request without a `traceparent`, or of a project
without a rollout, is not announced; no request waits for Redis.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping
from typing import Any

import redis

from core.processes.background_tasks import watch
from core.redis.clients import background_client
from core.redis.failures import REDIS_ERRORS, reason
from gateway.protocol.headers import trace_parent

logger = logging.getLogger("gateway.traced_requests")

# Redis keeps the requests of a trace for so long. Whoever sends a span later finds the record.
EXPIRY_SECONDS = 3600
# The newest requests of one trace.
_MAX_REQUESTS = 1000
# What begins within so many seconds is announced together. A span is stored before it is compared, which takes longer.
_GATHER_SECONDS = 0.01
_ANSWER_SECONDS = 1.0
# One command for all requests of a project that are announced together: three for each of them take redis-py 50 µs.
_ANNOUNCE = """
for place, key in ipairs(KEYS) do
    redis.call('LPUSH', key, ARGV[place + 2])
    redis.call('LTRIM', key, 0, ARGV[1])
    redis.call('EXPIRE', key, ARGV[2])
end
"""


class TracedRequests:
    def __init__(self, redis_url: str) -> None:
        self._redis = background_client(redis_url, connect_seconds=_ANSWER_SECONDS)
        self._pending: list[tuple[str, str, int]] = []
        self._task: asyncio.Task[None] | None = None
        self._away = False

    def begin(self, project_id: str, traceparent: str, arrived_us: int) -> None:
        """Announces a request that arrived then, in Unix microseconds. Does not wait."""
        trace_id, _ = trace_parent(traceparent)
        if not trace_id:
            return
        self._pending.append((project_id, trace_id, arrived_us))
        if self.is_idle:
            self._task = asyncio.get_running_loop().create_task(self._announce(), name="gateway.traced_requests")
            watch(self._task)

    @property
    def is_idle(self) -> bool:
        return self._task is None or self._task.done()

    async def close(self) -> None:
        if self._task is not None:
            await asyncio.wait([self._task])
        await self._redis.aclose()

    async def _announce(self) -> None:
        """Drops announcements while Redis is down: a span is then compared with the stored records only."""
        while self._pending:
            await asyncio.sleep(_GATHER_SECONDS)
            requests, self._pending = self._pending, []
            try:
                async with asyncio.timeout(_ANSWER_SECONDS):
                    await self._write(requests)
            except REDIS_ERRORS as error:
                self._note(away=True, error=reason(error))
            else:
                self._note(away=False)

    async def _write(self, requests: Collection[tuple[str, str, int]]) -> None:
        by_project: dict[str, list[tuple[str, int]]] = {}
        for project_id, trace_id, arrived_us in requests:
            by_project.setdefault(project_id, []).append((_key(project_id, trace_id), arrived_us))
        async with self._redis.pipeline(transaction=False) as batch:
            for announced in by_project.values():
                keys, times = zip(*announced, strict=True)
                batch.eval(_ANNOUNCE, len(keys), *keys, _MAX_REQUESTS - 1, EXPIRY_SECONDS, *times)
            await batch.execute()

    def _note(self, *, away: bool, error: str = "") -> None:
        if away != self._away:
            self._away = away
            logger.warning("redis.away error=%s" if away else "redis.back%s", error)


def traced_requests(
    client: redis.Redis, project_id: object, trace_ids: Collection[str]
) -> Mapping[str, Collection[int]]:
    """Returns the arrivals, in Unix microseconds, of the requests that began in each trace within the last hour.

    Raises REDIS_ERRORS.
    """
    with client.pipeline(transaction=False) as batch:
        for trace_id in trace_ids:
            batch.lrange(_key(project_id, trace_id), 0, -1)
        answers: list[Any] = batch.execute()
    return {trace_id: [int(time) for time in found] for trace_id, found in zip(trace_ids, answers, strict=True)}


def _key(project_id: object, trace_id: str) -> str:
    # The braces keep a project's keys on one node of a cluster.
    return f"svc:traced:{{{project_id}}}:{trace_id}"
