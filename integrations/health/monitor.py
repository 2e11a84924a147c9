from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import islice

from integrations.health.entries import MAX_TARGETS, Entries, Entry
from integrations.health.histogram import bucket_of
from integrations.health.minute_use import MinuteUse
from integrations.health.store import HealthStore
from integrations.health.sync import HealthSync
from integrations.health.targets import UNKNOWN, CircuitState, Target, TargetHealth
from integrations.health.window import FAILURES, OUTCOMES
from integrations.providers.errors import REQUEST_REFUSALS, FailureKind

# A target with a longer model name is not watched, since no provider has a model with such a name.
MAX_MODEL_CHARACTERS = 200
# A probe without an outcome for 15 seconds counts as lost, and another request may probe.
PROBE_SECONDS = 15.0


class HealthMonitor:
    """Used within one event loop only. `clock` returns Unix seconds, `draw` a random number from 0 to 1. Without
    `sync.run`, and while Redis does not answer, it has only this worker's own outcomes."""

    def __init__(
        self,
        redis_url: str,
        *,
        clock: Callable[[], float] = time.time,
        draw: Callable[[], float] = random.random,
        max_targets: int = MAX_TARGETS,
    ) -> None:
        self.clock = clock
        self._draw = draw
        self._entries = Entries(max_targets)
        self.use = MinuteUse(redis_url, clock=clock)
        sender = secrets.token_hex(8)
        self.sync = HealthSync(HealthStore(redis_url, sender), self._entries, sender, clock=clock, draw=draw)

    @property
    def watched(self) -> int:
        return len(self._entries)

    def circuits(self, limit: int) -> list[tuple[Target, CircuitState]]:
        now = self.clock()
        entries = ((target, self._entries.get(target)) for target in self._entries)
        return [
            (target, entry.circuit.state(now))
            for target, entry in islice((one for one in entries if one[1] and not one[1].circuit.closed), limit)
            if entry is not None
        ]

    @property
    def connected(self) -> bool:
        return self.sync.connected

    def health_of(self, target: Target) -> TargetHealth:
        entry = self._entries.get(target)
        if entry is None:
            return self._health_of_unknown(target)
        entry.count_pending()
        now = self.clock()
        # The review time lies in the future only after the clock was set back.
        if not entry.reviewed_at <= now < entry.stale_at:
            entry.review(now)
        if entry.circuit.closed:
            return entry.health
        return replace(entry.health, circuit=entry.circuit.state(now))

    def open_seconds(self, target: Target) -> float | None:
        entry = self._entries.get(target)
        if entry is None or entry.circuit.state(self.clock()) is not CircuitState.OPEN:
            return None
        return max(entry.circuit.record.open_until - self.clock(), 0.0)

    def note_success(self, target: Target, latency_ms: float) -> None:
        """`latency_ms` is the time to the first output of a stream, or to the end of a whole answer."""
        now = self.clock()
        known = self._entries.use(target)
        if known is not None and known.circuit.closed:
            if known.add_pending(now, latency_ms):
                self.sync.note_counted(target)
            return
        if len(target.model) > MAX_MODEL_CHARACTERS:
            return
        entry = self._count(target, now, (bucket_of(latency_ms), OUTCOMES))
        if entry.circuit.note_success(now, started=now - latency_ms / 1000):
            self._announce(target, entry)

    def note_failure(
        self, target: Target, kind: FailureKind, latency_ms: float, retry_after: float | None = None
    ) -> None:
        """Counts a failure, unless the request itself was at fault. `retry_after` is the provider's Retry-After in
        seconds."""
        if len(target.model) > MAX_MODEL_CHARACTERS:
            return
        now = self.clock()
        if kind in REQUEST_REFUSALS:
            self.release_probe(target)
            return
        # The time to a refusal is no measure of how long an answer takes. A time-out is one: the answer takes at least
        # as long.
        slow = (bucket_of(latency_ms),) if kind is FailureKind.TIMEOUT else ()
        entry = self._count(target, now, (*slow, OUTCOMES, FAILURES))
        started = now - latency_ms / 1000
        if entry.circuit.note_failure(now, kind, started=started, draw=self._draw(), retry_after=retry_after):
            self._announce(target, entry)

    async def claim_probe(self, target: Target) -> bool:
        """Returns True if the caller may probe a target whose circuit is half open: one caller over all workers at a
        time.

        Waits for Redis a tenth of a second at most; without it every worker has a probe of its own.
        """
        entry = self._entries.get(target)
        if entry is None or entry.circuit.closed:
            return True
        now = self.clock()
        if entry.circuit.state(now) is CircuitState.OPEN or now < entry.claimed_until:
            return False
        # The claim is set before the first wait, so that this worker's other requests do not claim too.
        entry.claimed_until = now + PROBE_SECONDS
        try:
            return await self.sync.claim(target, entry.circuit.record.version, PROBE_SECONDS)
        except asyncio.CancelledError:
            self.release_probe(target)
            raise

    def release_probe(self, target: Target) -> None:
        """Ends the claim of a probe that proved nothing (refused for its own fault, cancelled, never sent), so that the
        next request may probe."""
        entry = self._entries.get(target)
        if entry is None or entry.circuit.closed:
            return
        if self.clock() < entry.claimed_until:
            entry.claimed_until = 0.0
            self.sync.release(target, entry.circuit.record.version)

    async def close(self) -> None:
        await self.sync.close()
        await self.use.close()

    def _health_of_unknown(self, target: Target) -> TargetHealth:
        now = self.clock()
        if len(target.model) <= MAX_MODEL_CHARACTERS and not self.sync.knows_all(now):
            self.sync.entry(target, now)
        return UNKNOWN

    def _count(self, target: Target, now: float, fields: tuple[int, ...]) -> Entry:
        entry = self.sync.entry(target, now)
        entry.count_pending()
        entry.window.note(now, fields)
        entry.touch(now)
        self.sync.note_counted(target)
        return entry

    def _announce(self, target: Target, entry: Entry) -> None:
        # The claim is void because the opening that it was made for is over.
        entry.claimed_until = 0.0
        self.sync.note_circuit(target)
