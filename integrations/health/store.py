from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from math import ceil

from redis.asyncio.client import Pipeline

from core.redis.clients import background_client
from core.redis.subscription import next_message, subscription
from integrations.health.circuit import MAX_RETRY_AFTER, CircuitRecord
from integrations.health.keys import CHANNEL, circuit_key, models_key, probe_key, slice_key
from integrations.health.messages import (
    CircuitChange,
    HealthMessage,
    OutcomesSeen,
    SliceCounts,
    decode_counts,
    decode_record,
    encode_message,
    encode_record,
)
from integrations.health.targets import Target
from integrations.health.window import SLICE_SECONDS, SLICES, WINDOW_SECONDS, Counts, slice_of

ANSWER_SECONDS = 1.0
# A client's request waits for the claim of a probe, so its time limit is short.
CLAIM_SECONDS = 0.1

_SLICE_EXPIRY_SECONDS = WINDOW_SECONDS + 2 * SLICE_SECONDS
# After a circuit's last change its count of openings is kept for ten minutes, and lengthens the next opening.
_CIRCUIT_EXPIRY_SECONDS = MAX_RETRY_AFTER
_MODELS_EXPIRY_SECONDS = ceil(_SLICE_EXPIRY_SECONDS + MAX_RETRY_AFTER)


@dataclass(frozen=True, slots=True)
class StoredHealth:
    slices: dict[int, Counts]
    circuit: CircuitRecord | None


@dataclass(slots=True)
class Update:
    slices: list[SliceCounts] = field(default_factory=list)
    outcomes: list[OutcomesSeen] = field(default_factory=list)
    circuits: list[CircuitChange] = field(default_factory=list)
    released: list[str] = field(default_factory=list)
    first: set[tuple[Target, int]] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.slices or self.circuits or self.released)


class HealthStore:
    def __init__(self, redis_url: str, sender: str) -> None:
        # A connection that was closed while idle gets one more try at once; a time-out gets none.
        self._redis = background_client(redis_url, connect_seconds=ANSWER_SECONDS, retries=1)
        # The subscription has no retry, since a subscription that is renewed without notice would hide the messages
        # missed.
        self._listener = background_client(redis_url, connect_seconds=ANSWER_SECONDS, retries=0)
        self._sender = sender

    async def ping(self) -> None:
        async with asyncio.timeout(ANSWER_SECONDS):
            await self._redis.ping()

    async def close(self) -> None:
        await self._redis.aclose()
        await self._listener.aclose()

    async def write(self, update: Update, now: float) -> list[SliceCounts]:
        async with self._redis.pipeline(transaction=False) as batch:
            self._add_circuits(batch, update.circuits, now)
            for key in update.released:
                batch.delete(key)
            before = len(batch)
            for item in update.slices:
                for name, count in item.counts.items():
                    batch.hincrby(
                        slice_key(item.target.integration_id, item.target.model, item.number), str(name), count
                    )
            behind = len(batch)
            self._set_expiries(batch, update, now)
            async with asyncio.timeout(ANSWER_SECONDS):
                replies = await batch.execute()
        if update.circuits:
            # A pipeline on a cluster takes no command that any node may run.
            await self._publish(HealthMessage(self._sender, circuits=update.circuits))
        return _sums(update.slices, replies[before:behind])

    async def publish(self, slices: list[SliceCounts], outcomes: list[OutcomesSeen]) -> int:
        return await self._publish(HealthMessage(self._sender, slices, outcomes))

    async def _publish(self, message: HealthMessage) -> int:
        async with asyncio.timeout(ANSWER_SECONDS):
            subscribers: int = await self._redis.publish(CHANNEL, encode_message(message))
        return subscribers

    async def load(self, targets: Sequence[Target], numbers: Iterable[int]) -> list[StoredHealth]:
        slice_numbers = list(numbers)
        async with self._redis.pipeline(transaction=False) as batch:
            for target in targets:
                batch.get(circuit_key(target.integration_id, target.model))
                for number in slice_numbers:
                    batch.hgetall(slice_key(target.integration_id, target.model, number))
            async with asyncio.timeout(ANSWER_SECONDS):
                replies = await batch.execute()
        width = 1 + len(slice_numbers)
        return [_stored(slice_numbers, replies[at : at + width]) for at in range(0, len(replies), width)]

    async def claim(self, target: Target, version: int, seconds: float) -> bool:
        async with asyncio.timeout(CLAIM_SECONDS):
            key = probe_key(target, version)
            return bool(await self._redis.set(key, self._sender, nx=True, px=ceil(seconds * 1000)))

    @asynccontextmanager
    async def messages(self) -> AsyncIterator[Callable[[], Awaitable[bytes]]]:
        """Subscribes to the channel, and yields a function that waits for the next message. No message published inside
        the block is missed."""
        async with subscription(self._listener, CHANNEL, seconds=ANSWER_SECONDS) as channel:
            yield lambda: next_message(channel, seconds=ANSWER_SECONDS)

    def _add_circuits(self, batch: Pipeline, circuits: list[CircuitChange], now: float) -> None:
        for target, record in ((change.target, change.record) for change in circuits):
            seconds = max(record.open_until - now, 0.0) + _CIRCUIT_EXPIRY_SECONDS
            batch.set(circuit_key(target.integration_id, target.model), encode_record(record), px=ceil(seconds * 1000))
            self._list_model(batch, target, slice_of(max(record.open_until, now)))

    def _set_expiries(self, batch: Pipeline, update: Update, now: float) -> None:
        for integration_id in {target.integration_id for target, _ in update.first}:
            batch.zremrangebyscore(models_key(integration_id), "-inf", slice_of(now) - SLICES)
        for item in update.slices:
            if (item.target, item.number) in update.first:
                key = slice_key(item.target.integration_id, item.target.model, item.number)
                batch.expire(key, _SLICE_EXPIRY_SECONDS)
                self._list_model(batch, item.target, item.number)

    def _list_model(self, batch: Pipeline, target: Target, number: int) -> None:
        key = models_key(target.integration_id)
        batch.zadd(key, {target.model: number}, gt=True)
        batch.expire(key, _MODELS_EXPIRY_SECONDS)


def _sums(slices: list[SliceCounts], replies: list[int]) -> list[SliceCounts]:
    found = iter(replies)
    return [
        # The iterator `found` is shared by all items, and each `zip` takes as many sums as it has counts.
        SliceCounts(item.target, item.number, dict(zip(item.counts, found, strict=False)))
        for item in slices
    ]


def _stored(numbers: list[int], replies: list[object]) -> StoredHealth:
    circuit, *slices = replies
    return StoredHealth(
        slices={
            number: decode_counts(found)
            for number, found in zip(numbers, slices, strict=True)
            if isinstance(found, dict) and found
        },
        circuit=decode_record(circuit) if isinstance(circuit, bytes) else None,
    )
