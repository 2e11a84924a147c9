"""Notes in Redis, for each project, the ids of kept objects that its answers have contained.

A later request of that project may name them, and one of no other project (`gateway/pipeline/keeping.py`). A worker
notes them in the background once an answer is on its way; no answer waits for Redis, and none fails with it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from core.processes.background_tasks import watch
from core.redis.clients import background_client
from core.redis.failures import REDIS_ERRORS, reason
from integrations.providers.given import Given

logger = logging.getLogger("gateway.kept_ids")

# OpenAI keeps responses for 30 days, and no vendor keeps a container longer.
_DAYS = 31
_DAY_SECONDS = 86_400
# What is given out within so many seconds is noted together: redis-py takes 100 µs for the commands of one answer.
_GATHER_SECONDS = 0.1
# The note of another worker, which gathers, may still be under way.
_AGAIN_SECONDS = 0.2
_ANSWER_SECONDS = 1.0
_NO_INTEGRATION = b"0"

_Keepers = frozenset[int | None]
_Note = tuple[str, int | None, Sequence[Given]]


class KeptIds:
    """The notes of one worker; an instance belongs to one event loop.

    A project has one hash a day, in which an id takes some 60 bytes.
    """

    def __init__(self, redis_url: str) -> None:
        self._redis = background_client(redis_url, connect_seconds=_ANSWER_SECONDS)
        # What waits, and what is on its way to Redis.
        self._pending: list[_Note] = []
        self._leaving: list[_Note] = []
        self._lost = 0
        self._task: asyncio.Task[None] | None = None

    def note(self, project_id: str, integration_id: int | None, given: Sequence[Given]) -> None:
        """Notes that the integration keeps these for the project; None is one of the environment. Does not wait."""
        self._pending.append((project_id, integration_id, given))
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._write_all(), name="gateway.kept_ids")
            watch(self._task)

    @property
    def is_idle(self) -> bool:
        return self._task is None

    async def keepers(self, project_id: str, named: Collection[Given]) -> Mapping[Given, _Keepers]:
        """Returns the integrations that keep what is named; ids without a note are left out. Raises REDIS_ERRORS."""
        found = self._not_yet_written(project_id, named)
        for seconds in (0.0, _AGAIN_SECONDS):
            missing = [one for one in named if one not in found]
            if missing:
                await asyncio.sleep(seconds)
                async with asyncio.timeout(_ANSWER_SECONDS):
                    found |= await self._noted(project_id, missing)
        return found

    def _not_yet_written(self, project_id: str, named: Iterable[Given]) -> dict[Given, _Keepers]:
        notes = [(keeper, given) for project, keeper, given in self._leaving + self._pending if project == project_id]
        return {one: frozenset({keeper}) for keeper, given in notes for one in named if one in given}

    async def _noted(self, project_id: str, named: list[Given]) -> dict[Given, _Keepers]:
        today = _today()
        found = await self._noted_on(range(today - 1, today + 1), project_id, named)
        if missing := [one for one in named if one not in found]:
            found |= await self._noted_on(range(today - _DAYS, today - 1), project_id, missing)
        return found

    async def _noted_on(self, days: range, project_id: str, named: list[Given]) -> dict[Given, _Keepers]:
        fields = [_field(*one) for one in named]
        async with self._redis.pipeline(transaction=False) as batch:
            for day in days:
                batch.hmget(_key(project_id, day), fields)
            answers: list[list[bytes | None]] = await batch.execute()
        return {
            one: _keepers(*keepers)
            for one, keepers in zip(named, zip(*answers, strict=True), strict=True)
            if any(keepers)
        }

    async def close(self) -> None:
        if self._task is not None:
            await asyncio.wait([self._task])
        await self._redis.aclose()

    async def _write_all(self) -> None:
        """Notes ids until none is left. Ids that Redis does not take are lost, and logged once it does again."""
        try:
            while self._pending:
                await asyncio.sleep(_GATHER_SECONDS)
                self._leaving, self._pending = self._pending, []
                await self._try_to_write(self._leaving)
                self._leaving = []
        finally:
            self._task = None

    async def _try_to_write(self, notes: Collection[_Note]) -> None:
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                await self._write(notes)
        except REDIS_ERRORS as error:
            if not self._lost:
                logger.warning("redis.away error=%s", reason(error))
            self._lost += sum(len(given) for _, _, given in notes)
        else:
            if self._lost:
                logger.warning("redis.back lost_ids=%d", self._lost)
                self._lost = 0

    async def _write(self, notes: Iterable[_Note]) -> None:
        hashes: dict[str, dict[Any, bytes]] = {}
        for project_id, integration_id, given in notes:
            keeper = _NO_INTEGRATION if integration_id is None else b"%d" % integration_id
            fields = hashes.setdefault(project_id, {})
            for kind, of_provider in given:
                fields[_field(kind, of_provider)] = keeper
        today = _today()
        async with self._redis.pipeline(transaction=False) as batch:
            for project_id, fields in hashes.items():
                key = _key(project_id, today)
                batch.hset(key, mapping=fields)
                batch.expire(key, (_DAYS + 1) * _DAY_SECONDS)
            await batch.execute()


def _keepers(*noted: bytes | None) -> _Keepers:
    return frozenset(None if one == _NO_INTEGRATION else int(one) for one in noted if one)


def _today() -> int:
    return int(time.time()) // _DAY_SECONDS


def _key(project_id: str, day: int) -> str:
    return f"svc:kept:{{{project_id}}}:{day}"


def _field(kind: str, of_provider: str) -> bytes:
    return blake2b((kind + of_provider).encode(errors="surrogatepass"), digest_size=8).digest()
