"""Stores answers in Redis. During a Redis outage nothing is found or stored, and no request waits."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from itertools import islice
from typing import Any

import msgspec
import redis
import redis.asyncio

from core.processes.background_tasks import watch
from core.redis.clients import background_client
from core.redis.failures import REDIS_ERRORS, reason
from gateway.cache.key import prefix

logger = logging.getLogger("gateway.cache")

_RETRY_SECONDS = 1.0
_CONNECT_SECONDS = 1.0
# More concurrent commands wait for a connection: a burst of requests must not look like an outage of Redis.
_CONNECTIONS = 32
# Storing an answer delays no request, but pending writes are bounded.
_MAX_PUTS = 256
# Keys that are deleted in one round trip.
_MAX_UNLINKED = 1000


class CachedAnswer(msgspec.Struct, frozen=True):
    """A stored answer. `content` is a chat completion's JSON, or a stream's events without its terminator; if
    `is_native`, it is in the client's own protocol. `kept_at` is the Unix time of storing."""

    provider: str
    model: str
    finish_reason: str
    kept_at: float
    content: bytes
    is_native: bool = False


_decode = msgspec.msgpack.Decoder(CachedAnswer).decode
_encode = msgspec.msgpack.Encoder().encode


class ResponseCache:
    def __init__(self, url: str, *, max_bytes: int, timeout: float) -> None:
        """Answers over `max_bytes` are not stored. After `timeout` seconds without an answer, Redis counts as down."""
        self._redis = background_client(url, connect_seconds=max(timeout, _CONNECT_SECONDS))
        self._timeout = timeout
        self._slots = asyncio.Semaphore(_CONNECTIONS)
        self._max_bytes = max_bytes
        # Looks for a Redis that is away.
        self._looking: asyncio.Task[None] | None = None
        self._refused = False
        self._puts: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        await asyncio.gather(*self._puts, return_exceptions=True)
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait([self._looking])
        await self._redis.aclose()

    @property
    def is_away(self) -> bool:
        return self._looking is not None and not self._looking.done()

    async def get(self, key: str, *, max_age: float) -> CachedAnswer | None:
        kept = await self._read(self._redis.get, key)
        return None if kept is None else _answer(kept, max_age)

    async def get_both(
        self, key: str, other: str, *, max_age: float
    ) -> tuple[CachedAnswer | None, CachedAnswer | None]:
        """Does `get` for two keys in one round trip. Both belong to one project, so they share a slot of a cluster."""
        kept = await self._read(self._redis.mget, key, other)
        if kept is None:
            return None, None
        own, others = (None if one is None else _answer(one, max_age) for one in kept)
        return own, others

    async def _read(self, command: Callable[..., Any], *keys: str) -> Any:
        async with self._slots:
            if self.is_away:
                return None
            try:
                async with asyncio.timeout(self._timeout):
                    found = await command(*keys)
            except REDIS_ERRORS as error:
                self._note_away(error)
                return None
            return found

    def put(self, key: str, answer: CachedAnswer, ttl: int) -> None:
        if self.is_away or len(answer.content) > self._max_bytes or len(self._puts) >= _MAX_PUTS:
            return
        task = asyncio.get_running_loop().create_task(self._put(key, _encode(answer), ttl), name="gateway.cache.put")
        self._puts.add(task)
        task.add_done_callback(self._puts.discard)
        watch(task)

    async def _put(self, key: str, kept: bytes, ttl: int) -> None:
        async with self._slots:
            if self.is_away:
                return
            try:
                async with asyncio.timeout(self._timeout):
                    await self._redis.set(key, kept, ex=ttl)
            except redis.ResponseError as error:
                # Redis answers and refuses the write: its disk or memory is full, or it is a replica.
                self._note_refusal(error)
            except REDIS_ERRORS as error:
                self._note_away(error)
            else:
                self._note_accepted()

    def _note_refusal(self, error: redis.ResponseError) -> None:
        if not self._refused:
            self._refused = True
            logger.warning("redis.refuses error=%s", str(error).partition(" ")[0])

    def _note_accepted(self) -> None:
        if self._refused:
            self._refused = False
            logger.warning("redis.accepts")

    def _note_away(self, error: Exception) -> None:
        if not self.is_away:
            logger.warning("redis.away error=%s", reason(error))
            self._looking = asyncio.get_running_loop().create_task(self._look(), name="gateway.cache.look")
            watch(self._looking)

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(_RETRY_SECONDS)
            try:
                async with asyncio.timeout(_CONNECT_SECONDS):
                    await self._redis.ping()
            except REDIS_ERRORS:
                continue
            logger.warning("redis.back")
            return


def _answer(kept: bytes, max_age: float) -> CachedAnswer | None:
    try:
        answer = _decode(kept)
    except msgspec.DecodeError:
        return None  # Another version of this code has written the answer.
    return answer if time.time() - answer.kept_at <= max_age else None


def empty(client: redis.Redis, project: str) -> int:
    """Deletes on all nodes of a cluster; returns the number of answers. Raises the errors of REDIS_ERRORS."""
    count, keys = 0, client.scan_iter(match=prefix(project) + "*", count=1000)
    while some := list(islice(keys, _MAX_UNLINKED)):
        with client.pipeline(transaction=False) as batch:
            # One key each: while a slot moves between nodes, a command for several keys is refused.
            for key in some:
                batch.unlink(key)
            count += sum(batch.execute())
    return count
