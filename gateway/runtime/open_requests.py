"""Publishes this worker's open requests in Redis, for the evaluation of rollouts.

These are requests in flight that a rollout allocated and that have no first output. A worker without them does not
connect to Redis. During a Redis outage no request waits: open requests then count when they end.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Protocol

from analytics.spool.names import worker_token
from core.redis.clients import background_client
from core.redis.failures import REDIS_ERRORS, reason
from gateway.snapshot.prompts import PromptUse
from rollouts.open_requests.lists import (
    EXPIRY_SECONDS,
    INTERVAL_SECONDS,
    OPEN_SECONDS,
    WORKERS_EXPIRY_SECONDS,
    OpenRequest,
    encode,
    key,
    workers_key,
)

logger = logging.getLogger("gateway.open_requests")

_ANSWER_SECONDS = 1.0


class PromptedRequest(Protocol):
    """`started` and `first_output` are `perf_counter` times; the latter is 0 before the first output."""

    request_id: str
    arrived_us: int
    started: float
    prompt: PromptUse

    @property
    def first_output(self) -> float: ...


class OpenRequests:
    def __init__(self, redis_url: str) -> None:
        self._redis = background_client(redis_url, connect_seconds=_ANSWER_SECONDS)
        self._open: dict[str, PromptedRequest] = {}
        # The rollouts for which Redis may hold a list of this worker.
        self._announced: set[str] = set()
        self._away = False

    def begin(self, request: PromptedRequest) -> None:
        """Adds a request whose prompt a rollout chose. Forced requests and substituted units are in no arm."""
        if request.prompt.unit and not request.prompt.fallback:
            self._open[request.request_id] = request

    def end(self, request: PromptedRequest) -> None:
        self._open.pop(request.request_id, None)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(INTERVAL_SECONDS)
            await self.publish()

    async def publish(self) -> None:
        """Raises nothing while Redis is down."""
        lists = self._without_output(time.perf_counter() - OPEN_SECONDS)
        withdrawn = self._announced - lists.keys()
        if not lists and not withdrawn:
            return
        # The lists may have arrived even without a response.
        self._announced |= lists.keys()
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                await self._write(lists, withdrawn)
        except REDIS_ERRORS as error:
            if not self._away:
                self._away = True
                logger.warning("redis.away error=%s", reason(error))
            return
        self._announced -= withdrawn
        if self._away:
            self._away = False
            logger.warning("redis.back")

    async def close(self) -> None:
        """Withdraws the published lists, if that can be done quickly: the requests are over."""
        if not self._away:
            await self.publish()
        await self._redis.aclose()

    def _without_output(self, since: float) -> dict[str, list[OpenRequest]]:
        found: dict[str, list[OpenRequest]] = {}
        for request in self._open.values():
            if request.started <= since and not request.first_output:
                prompt = request.prompt
                found.setdefault(prompt.rollout_id, []).append(
                    OpenRequest(
                        request.request_id,
                        prompt.rollout_id,
                        prompt.stage,
                        prompt.variant,
                        prompt.unit,
                        request.arrived_us,
                    )
                )
        return found

    async def _write(self, lists: dict[str, list[OpenRequest]], withdrawn: set[str]) -> None:
        worker = worker_token()
        async with self._redis.pipeline(transaction=False) as batch:
            for rollout_id, requests in lists.items():
                workers = workers_key(rollout_id)
                batch.set(key(rollout_id, worker), encode(requests), px=int(EXPIRY_SECONDS * 1000))
                batch.sadd(workers, worker)
                batch.expire(workers, int(WORKERS_EXPIRY_SECONDS))
            for rollout_id in withdrawn:
                batch.delete(key(rollout_id, worker))
                batch.srem(workers_key(rollout_id), worker)
            await batch.execute()
