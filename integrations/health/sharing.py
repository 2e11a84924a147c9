"""Keeps what the workers know of the targets the same, by way of Redis.

A worker adds its counts to those in Redis, which answers with the sums of all workers; those it tells the others over
a channel. What is said twice or out of order changes nothing (see `Window`). A worker that has nothing to say says
nothing, and what it does not know after a start or a gap it reads when it is asked for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress

import msgspec
import redis
from redis.asyncio.client import PubSub

from integrations.health.entries import Entries, Entry
from integrations.health.keys import probe_key
from integrations.health.messages import CircuitChange, Message, SliceCounts, decode_message
from integrations.health.store import HealthStore, Parcel, Shared, next_message
from integrations.health.targets import Target
from integrations.health.window import (
    FAILURES,
    OUTCOMES,
    SLICE_SECONDS,
    WINDOW_SECONDS,
    Counts,
    current_slices,
)

logger = logging.getLogger("integrations.health")

# One write at most in so many seconds, or fewer where that would be more than 250 messages a second for each worker.
INTERVAL_SECONDS = 0.25
_SECONDS_PER_LISTENER = 0.004
# One write or read at a time covers so many targets: encoding them keeps the loop from everything else.
_TARGETS_AT_ONCE = 64
_HOUSEKEEPING_SECONDS = 60.0
_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 5.0
_LAST_WORDS_SECONDS = 0.5


class Sharing:
    """Used within one event loop. The methods that are no coroutines only note what is to be done."""

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
        self._news = asyncio.Event()
        self._urgent = asyncio.Event()
        # Keys only: dicts keep the order in which things were noted.
        self._counted: dict[Target, None] = {}
        self._wanted: dict[Target, None] = {}
        self._circuits: dict[Target, None] = {}
        # Sent to Redis, and not known to have been told to the others.
        self._untold: dict[Target, None] = {}
        self._released: list[str] = []
        self._written: dict[tuple[Target, int], None] = {}
        self._connected = False
        self._away = False
        self._heard_since: float | None = None
        self._interval = INTERVAL_SECONDS

    @property
    def connected(self) -> bool:
        return self._connected

    @property
    def busy(self) -> bool:
        return bool(self._counted or self._wanted or self._circuits or self._untold or self._released)

    def entry(self, target: Target, now: float) -> Entry:
        """What is known of the target; what is not is fetched soon, unless it would have been heard of."""
        entry = self._entries.use(target)
        if entry is None:
            entry = self._entries.add(target, now)
            entry.complete = self.knows_all(now)
            if not entry.complete:
                self._queue(self._wanted, target)
                self._news.set()
        return entry

    def knows_all(self, now: float) -> bool:
        """A worker that has listened for a whole window has heard of everything in it."""
        return self._heard_since is not None and now - self._heard_since > WINDOW_SECONDS + SLICE_SECONDS

    def note_counted(self, target: Target) -> None:
        self._queue(self._counted, target)
        self._news.set()

    def note_circuit(self, target: Target) -> None:
        self._queue(self._circuits, target)
        self._hurry()

    def release(self, target: Target, version: int) -> None:
        """Gives back a claim whose probe proved nothing."""
        if self._connected:
            self._released.append(probe_key(target, version))
            self._hurry()

    async def claim(self, target: Target, version: int, seconds: float) -> bool:
        """Without Redis every worker has a probe of its own."""
        if not self._connected:
            return True
        try:
            return await self._store.claim(target, version, seconds)
        except (redis.RedisError, OSError):
            # Nobody waits for it again until it has answered a ping; `run` tells the log.
            self._connected = False
            self._hurry()
            return True

    async def run(self) -> None:
        """Ends only when cancelled."""
        pause = _FIRST_PAUSE_SECONDS
        while True:
            try:
                await self._share()
            except (redis.RedisError, OSError) as error:
                pause = _FIRST_PAUSE_SECONDS if not self._away else min(2 * pause, _LONGEST_PAUSE_SECONDS)
                self._lost(error)
            except Exception:
                # A defect of ours, or foreign data in Redis: the others are better heard late than never again.
                pause = _LONGEST_PAUSE_SECONDS
                logger.exception("sharing.failed")
            finally:
                self._connected = False
                self._heard_since = None
            await asyncio.sleep(pause)

    async def close(self) -> None:
        """Says what there is still to say, if that can be done quickly."""
        if not self._away:
            with suppress(redis.RedisError, OSError):
                async with asyncio.timeout(_LAST_WORDS_SECONDS):
                    await self._ship_all()
        await self._store.close()

    async def _share(self) -> None:
        async with self._store.subscription() as channel:
            self._heard_since = self._clock()
            self._wanted.update(dict.fromkeys(self._entries))
            await self._load_wanted()
            self._found()
            await _until_one_ends(self._listen(channel), self._ship_regularly())

    async def _listen(self, channel: PubSub) -> None:
        while True:
            data = await next_message(channel)
            try:
                message = decode_message(data)
            except msgspec.DecodeError as error:
                logger.warning("message.unreadable error=%s", error)
                continue
            if message.sender != self._sender:
                self._hear(message)

    async def _ship_regularly(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_HOUSEKEEPING_SECONDS):
                    await self._news.wait()
            self._news.clear()
            self._urgent.clear()
            self._keep_house()
            if not self._connected:
                await self._store.ping()
                self._connected = True
            await self._load_wanted()
            await self._ship_all()
            # The next change of a circuit ends the pause.
            with suppress(TimeoutError):
                async with asyncio.timeout(self._interval):
                    await self._urgent.wait()

    def _keep_house(self) -> None:
        now = self._clock()
        self._entries.drop_idle(now)
        current = current_slices(now)
        for key in [key for key in self._written if key[1] not in current]:
            del self._written[key]

    async def _load_wanted(self) -> None:
        while self._wanted:
            targets = list(self._wanted)[:_TARGETS_AT_ONCE]
            found = await self._store.load(targets, current_slices(self._clock()))
            for target, shared in zip(targets, found, strict=True):
                self._wanted.pop(target, None)
                entry = self._entries.get(target)
                if entry is not None:
                    _complete(entry, shared)
            await self._tell(
                SliceCounts(target, number, counts)
                for target, shared in zip(targets, found, strict=True)
                if target in self._untold
                for number, counts in shared.slices.items()
            )

    async def _ship_all(self) -> None:
        while parcel := self._pack():
            for item in parcel.slices:
                self._queue(self._untold, item.target)
            sums = await self._store.ship(parcel, self._clock())
            for target, record in ((change.target, change.record) for change in parcel.circuits):
                entry = self._entries.get(target)
                if entry is None or entry.circuit.record == record:
                    self._circuits.pop(target, None)
            self._merge(sums)
            await self._tell(sums)

    async def _tell(self, sums: Iterable[SliceCounts]) -> None:
        told = list(sums)
        if told:
            listeners = await self._store.publish(told)
            self._interval = max(INTERVAL_SECONDS, listeners * _SECONDS_PER_LISTENER)
            for item in told:
                self._untold.pop(item.target, None)

    def _pack(self) -> Parcel:
        parcel = Parcel(released=self._released)
        self._released = []
        for target in list(self._circuits):
            entry = self._entries.get(target)
            if entry is None:
                del self._circuits[target]
            else:
                parcel.circuits.append(CircuitChange(target, entry.circuit.record))
        for target in list(self._counted)[:_TARGETS_AT_ONCE]:
            del self._counted[target]
            self._pack_counts(parcel, target)
        return parcel

    def _pack_counts(self, parcel: Parcel, target: Target) -> None:
        entry = self._entries.get(target)
        if entry is None:
            return
        for number, counts in entry.window.take_unshipped(self._clock()).items():
            key = (target, number)
            if key not in self._written:
                # Names that clients make up do not fill Redis: what is too many stays with this worker.
                if len(self._written) >= self._entries.max_targets:
                    continue
                self._written[key] = None
                parcel.first.add(key)
            parcel.slices.append(SliceCounts(target, number, counts))

    def _hear(self, message: Message) -> None:
        for change in message.circuits:
            entry = self.entry(change.target, self._clock())
            if entry.circuit.adopt(change.record):
                entry.claimed_until = 0.0
        self._merge(message.slices)

    def _merge(self, sums: list[SliceCounts]) -> None:
        now = self._clock()
        for item in sums:
            entry = self.entry(item.target, now)
            fresh = entry.window.merge(item.number, item.counts)
            if fresh:
                entry.touch(now)
            # In an incomplete one it may be what a circuit, closed since, was once opened for.
            if fresh and entry.complete and self._note_others(entry, fresh, now):
                self.note_circuit(item.target)

    def _note_others(self, entry: Entry, fresh: Counts, now: float) -> bool:
        outcomes, failures = fresh.get(OUTCOMES, 0), fresh.get(FAILURES, 0)
        return entry.circuit.note_others(now, outcomes=outcomes, failures=failures, draw=self._draw())

    def _queue(self, queue: dict[Target, None], target: Target) -> None:
        """Queues are as bounded as what is watched; what falls out of one is back with its next outcome."""
        if len(queue) >= self._entries.max_targets and target not in queue:
            del queue[next(iter(queue))]
        queue[target] = None

    def _hurry(self) -> None:
        self._news.set()
        self._urgent.set()

    def _found(self) -> None:
        self._connected = True
        self._news.set()
        if self._away:
            self._away = False
            logger.info("redis.back")

    def _lost(self, error: Exception) -> None:
        if not self._away:
            self._away = True
            logger.warning("redis.away error=%s", type(error).__name__)


async def _until_one_ends(*work: Coroutine[object, object, None]) -> None:
    """Raises what that one raised; the others are cancelled.

    No task group: when its tasks fail while it is cancelled itself, it raises their errors instead.
    """
    tasks = [asyncio.create_task(one) for one in work]
    try:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in ended:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _complete(entry: Entry, shared: Shared) -> None:
    for number, counts in shared.slices.items():
        entry.window.merge(number, counts)
    if shared.circuit is not None:
        entry.circuit.adopt(shared.circuit)
    entry.complete = True
    entry.touch(entry.noted_at)
