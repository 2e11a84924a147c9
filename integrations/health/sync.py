"""Exchanges the health of targets between the workers through Redis.

A worker adds its counts to those in Redis, which answers with the sums of all workers; the worker publishes these sums
on a channel. A message that arrives twice or out of order changes nothing (see `Window`). A worker without new counts
sends nothing. After a start or a gap it reads a target's health from Redis when it is first asked for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress

import msgspec

from core.redis.failures import REDIS_ERRORS, reason
from integrations.health.entries import Entries, Entry
from integrations.health.keys import probe_key
from integrations.health.messages import CircuitChange, HealthMessage, OutcomesSeen, SliceCounts, decode_message
from integrations.health.store import HealthStore, StoredHealth, Update
from integrations.health.targets import Target
from integrations.health.window import SLICE_SECONDS, WINDOW_SECONDS, current_slices

logger = logging.getLogger("integrations.health")

# A worker writes every quarter of a second at most, and less often when all workers together would otherwise receive
# more than 250 messages or 2000 counted slices a second. Changes of circuits are sent without this delay.
INTERVAL_SECONDS = 0.25
_SECONDS_PER_SUBSCRIBER = 0.004
_SECONDS_PER_RECEIVED_SLICE = 0.0005
_MAX_INTERVAL_SECONDS = 30.0
# One write or read covers at most 64 targets, since encoding more would block the event loop for too long.
_TARGETS_AT_ONCE = 64
_HOUSEKEEPING_SECONDS = 60.0
_FIRST_PAUSE_SECONDS = 0.5
_MAX_PAUSE_SECONDS = 5.0
_FINAL_SEND_SECONDS = 0.5


class HealthSync:
    def __init__(
        self,
        store: HealthStore,
        entries: Entries,
        sender: str,
        *,
        clock: Callable[[], float],
        draw: Callable[[], float],
    ) -> None:
        self._store = store
        self._entries = entries
        self._sender = sender
        self._clock = clock
        self._draw = draw
        self._queued = asyncio.Event()
        self._urgent = asyncio.Event()
        # The dicts below are used as ordered sets: they keep the order in which targets were noted, and their values
        # mean nothing.
        self._counted: dict[Target, None] = {}
        self._to_load: dict[Target, None] = {}
        self._circuits: dict[Target, None] = {}
        # `_unannounced` holds targets whose counts were sent to Redis and perhaps not published to the other workers.
        self._unannounced: dict[Target, None] = {}
        self._released: list[str] = []
        # `_written` holds the targets whose counts Redis has, by the number of the slice.
        self._written: dict[int, set[Target]] = {}
        self._connected = False
        self._away = False
        self._subscribed_since: float | None = None
        self._interval = INTERVAL_SECONDS

    @property
    def connected(self) -> bool:
        return self._connected

    @property
    def pending(self) -> bool:
        return bool(self._counted or self._to_load or self._circuits or self._unannounced or self._released)

    def entry(self, target: Target, now: float) -> Entry:
        """Fetches an unknown target soon, unless this worker has listened long enough to have received every update
        about it."""
        entry = self._entries.use(target)
        if entry is None:
            entry = self._entries.add(target, now)
            if not self.knows_all(now):
                self._queue(self._to_load, target)
                self._queued.set()
        return entry

    def knows_all(self, now: float) -> bool:
        return self._subscribed_since is not None and now - self._subscribed_since > WINDOW_SECONDS + SLICE_SECONDS

    def note_counted(self, target: Target) -> None:
        self._queue(self._counted, target)
        self._queued.set()

    def note_circuit(self, target: Target) -> None:
        self._queue(self._circuits, target)
        self._wake()

    def release(self, target: Target, version: int) -> None:
        if self._connected:
            self._released.append(probe_key(target, version))
            self._wake()

    async def claim(self, target: Target, version: int, seconds: float) -> bool:
        """Returns True if this worker may probe. While Redis does not answer every worker may."""
        if not self._connected:
            return True
        try:
            return await self._store.claim(target, version, seconds)
        except REDIS_ERRORS:
            # No request waits for Redis again until it has answered a ping; `run` writes the log entry.
            self._connected = False
            self._wake()
            return True

    async def run(self) -> None:
        pause = _FIRST_PAUSE_SECONDS
        while True:
            try:
                await self._synchronize()
            except REDIS_ERRORS as error:
                pause = _FIRST_PAUSE_SECONDS if not self._away else min(2 * pause, _MAX_PAUSE_SECONDS)
                self._note_disconnected(error)
            finally:
                self._connected = False
                self._subscribed_since = None
            await asyncio.sleep(pause)

    async def close(self) -> None:
        if self.pending and not self._away:
            with suppress(*REDIS_ERRORS):
                async with asyncio.timeout(_FINAL_SEND_SECONDS):
                    await self._send_all()
        await self._store.close()

    async def _synchronize(self) -> None:
        async with self._store.messages() as next_message:
            self._subscribed_since = self._clock()
            # The server may be a different Redis now, or the last writes may not have arrived.
            self._written.clear()
            self._to_load.update(dict.fromkeys(self._entries))
            self._counted.update(dict.fromkeys(self._entries))
            await self._load_stored()
            # A Redis that refuses to write (its disk or memory is full, it is a replica) still answers reads.
            await self._store.ping()
            await self._send_all()
            self._note_connected()
            await _until_one_ends(self._listen(next_message), self._send_regularly())

    async def _listen(self, next_message: Callable[[], Awaitable[bytes]]) -> None:
        while True:
            data = await next_message()
            try:
                message = decode_message(data)
            except msgspec.DecodeError as error:
                logger.warning("message.unreadable error=%s", error)
                continue
            if message.sender != self._sender:
                self._receive(message)

    async def _send_regularly(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_HOUSEKEEPING_SECONDS):
                    await self._queued.wait()
            self._queued.clear()
            self._urgent.clear()
            self._drop_expired()
            if not self._connected:
                await self._store.ping()
                self._connected = True
            await self._load_stored()
            await self._send_all()
            # The next change of a circuit ends the pause.
            with suppress(TimeoutError):
                async with asyncio.timeout(self._interval):
                    await self._urgent.wait()

    def _drop_expired(self) -> None:
        now = self._clock()
        self._entries.drop_idle(now)
        current = current_slices(now)
        for number in [number for number in self._written if number not in current]:
            del self._written[number]

    async def _load_stored(self) -> None:
        while self._to_load:
            targets = list(self._to_load)[:_TARGETS_AT_ONCE]
            found = await self._store.load(targets, current_slices(self._clock()))
            for target, stored in zip(targets, found, strict=True):
                self._to_load.pop(target, None)
                entry = self._entries.get(target)
                if entry is not None:
                    _merge_stored(entry, stored)
            # The other workers have not received the counts that Redis had taken when it stopped answering.
            unannounced = [
                SliceCounts(target, number, counts)
                for target, stored in zip(targets, found, strict=True)
                if target in self._unannounced
                for number, counts in stored.slices.items()
            ]
            await self._publish(unannounced, [])
            for target in targets:
                self._unannounced.pop(target, None)

    async def _send_all(self) -> None:
        due = INTERVAL_SECONDS
        waiting = list(self._counted)
        for at in range(0, max(len(waiting), 1), _TARGETS_AT_ONCE):
            update = self._next_update(waiting[at : at + _TARGETS_AT_ONCE])
            if update:
                subscribers, slices = await self._send(update)
                due = max(
                    due + subscribers * slices * _SECONDS_PER_RECEIVED_SLICE, subscribers * _SECONDS_PER_SUBSCRIBER
                )
        self._interval = min(due, _MAX_INTERVAL_SECONDS)

    async def _send(self, update: Update) -> tuple[int, int]:
        for item in update.slices:
            self._queue(self._unannounced, item.target)
        sums = await self._store.write(update, self._clock())
        del self._released[: len(update.released)]
        for target, record in ((change.target, change.record) for change in update.circuits):
            entry = self._entries.get(target)
            if entry is None or entry.circuit.record == record:
                self._circuits.pop(target, None)
        self._merge(sums)
        return await self._publish(sums, update.outcomes), len(sums)

    async def _publish(self, sums: list[SliceCounts], outcomes: list[OutcomesSeen]) -> int:
        subscribers = await self._store.publish(sums, outcomes) if sums or outcomes else 0
        for item in sums:
            self._unannounced.pop(item.target, None)
        return subscribers

    def _next_update(self, counted: list[Target]) -> Update:
        update = Update(released=self._released[:])
        for target in list(self._circuits):
            entry = self._entries.get(target)
            if entry is None:
                del self._circuits[target]
            else:
                update.circuits.append(CircuitChange(target, entry.circuit.record))
        for target in counted:
            self._counted.pop(target, None)
            self._add_counts(update, target)
        return update

    def _add_counts(self, update: Update, target: Target) -> None:
        entry = self._entries.get(target)
        if entry is None:
            return
        entry.count_pending()
        seen = entry.circuit.take_own()
        if seen is not None:
            update.outcomes.append(OutcomesSeen(target, seen))
        for number, counts in entry.window.take_unsent(self._clock()).items():
            written = self._written.setdefault(number, set())
            if target not in written:
                # Model names that clients make up must not fill Redis: targets above the maximum stay in this worker's
                # memory only.
                if len(written) >= self._entries.max_targets:
                    continue
                written.add(target)
                update.first.add((target, number))
            update.slices.append(SliceCounts(target, number, counts))

    def _receive(self, message: HealthMessage) -> None:
        for change in message.circuits:
            entry = self.entry(change.target, self._clock())
            if entry.circuit.adopt(change.record):
                entry.claimed_until = 0.0
        now = self._clock()
        for target, seen in ((item.target, item.seen) for item in message.outcomes):
            if self.entry(target, now).circuit.note_others(now, seen, draw=self._draw()):
                self.note_circuit(target)
        self._merge(message.slices)

    def _merge(self, sums: list[SliceCounts]) -> None:
        now = self._clock()
        for item in sums:
            entry = self.entry(item.target, now)
            if entry.window.merge(item.number, item.counts):
                entry.touch(now)

    def _queue(self, queue: dict[Target, None], target: Target) -> None:
        if len(queue) >= self._entries.max_targets and target not in queue:
            del queue[next(iter(queue))]
        queue[target] = None

    def _wake(self) -> None:
        self._queued.set()
        self._urgent.set()

    def _note_connected(self) -> None:
        self._connected = True
        self._queued.set()
        if self._away:
            self._away = False
            logger.info("redis.back")

    def _note_disconnected(self, error: Exception) -> None:
        if not self._away:
            self._away = True
            logger.warning("redis.away error=%s", reason(error))


async def _until_one_ends(*work: Coroutine[object, object, None]) -> None:
    """Cancels the others when one ends, and raises its exception. A task group would not do: if its tasks fail while it
    is cancelled, it raises their errors instead of the cancellation."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in ended:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _merge_stored(entry: Entry, stored: StoredHealth) -> None:
    for number, counts in stored.slices.items():
        entry.window.merge(number, counts)
    if stored.circuit is not None:
        entry.circuit.adopt(stored.circuit)
    entry.touch(entry.noted_at)
