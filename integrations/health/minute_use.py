"""The requests and tokens that each deployment got in this minute from all workers, against the vendor's own limits.

A worker counts in memory and adds its counts to Redis several times a second, so that selection waits for nothing. It
misses what other workers did within that time; then the vendor refuses.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from core.redis.clients import background_client
from core.redis.failures import REDIS_ERRORS, reason
from integrations.health.keys import minute_key

logger = logging.getLogger("integrations.health")

SYNC_SECONDS = 0.1
ANSWER_SECONDS = 1.0
_EXPIRY_SECONDS = 120
_REQUESTS, _TOKENS = "requests", "tokens"


@dataclass(slots=True)
class _Count:
    minute: int
    requests: int = 0
    tokens: int = 0
    unsent_requests: int = 0
    unsent_tokens: int = 0


class MinuteUse:
    """`clock` returns Unix seconds. Without `follow`, and while Redis does not answer, it has only this worker's own
    use."""

    def __init__(self, redis_url: str, *, clock: Callable[[], float]) -> None:
        self._redis = background_client(redis_url, connect_seconds=ANSWER_SECONDS)
        self._clock = clock
        # One for each deployment with limits, whose number operators choose.
        self._counts: dict[int, _Count] = {}
        self._changed = asyncio.Event()

    def note(self, integration_id: int, *, requests: int = 0, tokens: int = 0) -> None:
        count = self._now(integration_id)
        count.requests += requests
        count.tokens += tokens
        count.unsent_requests += requests
        count.unsent_tokens += tokens
        self._changed.set()

    def is_used_up(self, integration_id: int, *, rpm: int | None, tpm: int | None) -> bool:
        count = self._counts.get(integration_id)
        if count is None or count.minute != int(self._clock() // 60):
            return False
        return (rpm is not None and count.requests >= rpm) or (tpm is not None and count.tokens >= tpm)

    async def follow(self) -> None:
        while True:
            await self._changed.wait()
            await asyncio.sleep(SYNC_SECONDS)
            self._changed.clear()
            await self.sync()

    async def sync(self) -> None:
        unsent = {
            number: count for number, count in self._counts.items() if count.unsent_requests or count.unsent_tokens
        }
        if not unsent:
            return
        async with self._redis.pipeline(transaction=False) as batch:
            for number, count in unsent.items():
                key = minute_key(number, count.minute)
                batch.hincrby(key, _REQUESTS, count.unsent_requests)
                batch.hincrby(key, _TOKENS, count.unsent_tokens)
                batch.expire(key, _EXPIRY_SECONDS)
                count.unsent_requests = count.unsent_tokens = 0
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    replies = await batch.execute()
            except REDIS_ERRORS as error:
                logger.warning("minute_use.unsent error=%s", reason(error))
                return
        for count, requests, tokens in zip(unsent.values(), replies[::3], replies[1::3], strict=True):
            # The counts went on while Redis answered.
            count.requests = requests + count.unsent_requests
            count.tokens = tokens + count.unsent_tokens

    async def close(self) -> None:
        await self._redis.aclose()

    def _now(self, integration_id: int) -> _Count:
        minute = int(self._clock() // 60)
        count = self._counts.get(integration_id)
        if count is None or count.minute != minute:
            count = self._counts[integration_id] = _Count(minute)
        return count
