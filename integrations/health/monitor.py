"""What one web worker knows of the targets' health. Reading and noting need no I/O; `follow` shares with the others."""

from __future__ import annotations

import asyncio
import random
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from math import inf

from integrations.health.circuit import Circuit
from integrations.health.histogram import bucket_of
from integrations.health.summary import summarize
from integrations.health.targets import UNKNOWN, CircuitState, Target, TargetHealth
from integrations.health.window import FAILURES, OUTCOMES, SLICE_SECONDS, Window
from integrations.providers.errors import FailureKind

# Clients choose the model names: what has been quiet longest makes room, and what is longer is not watched.
MAX_TARGETS = 2048
LONGEST_MODEL = 200
# A probe that has not been heard of for so long is taken for lost, and another may be sent.
PROBE_SECONDS = 15.0

# A window with many samples is not added up again for each of them.
_FEW_SAMPLES = 50
_SETTLED_SECONDS = 0.2


class _Entry:
    __slots__ = ("changed", "circuit", "claimed_until", "health", "reviewed_at", "stale_at", "window")

    def __init__(self) -> None:
        self.window = Window()
        self.circuit = Circuit()
        self.health = UNKNOWN
        self.changed = False
        self.reviewed_at = 0.0
        self.stale_at = 0.0
        self.claimed_until = 0.0

    def review(self, now: float) -> None:
        self.health = summarize(self.window.totals(now), CircuitState.CLOSED)
        self.changed = False
        self.reviewed_at = now
        # Without anything new the figures change when the oldest slice leaves the window.
        self.stale_at = now - now % SLICE_SECONDS + SLICE_SECONDS

    def touch(self) -> None:
        """Something was counted."""
        if not self.changed:
            self.changed = True
            settled = _SETTLED_SECONDS if self.health.samples > _FEW_SAMPLES else 0.0
            self.stale_at = min(self.stale_at, self.reviewed_at + settled)


class HealthMonitor:
    """One per web worker, used within its event loop only. `clock` tells Unix seconds, `draw` a number from 0 to 1."""

    def __init__(
        self,
        redis_url: str,
        *,
        clock: Callable[[], float] = time.time,
        draw: Callable[[], float] = random.random,
        max_targets: int = MAX_TARGETS,
    ) -> None:
        self._clock = clock
        self._draw = draw
        self._max_targets = max_targets
        # The one noted longest ago comes first.
        self._entries: OrderedDict[Target, _Entry] = OrderedDict()

    def health_of(self, target: Target) -> TargetHealth:
        entry = self._entries.get(target)
        if entry is None:
            return UNKNOWN
        now = self._clock()
        # The first comparison holds unless the clock was set back.
        if not entry.reviewed_at <= now < entry.stale_at:
            entry.review(now)
        if entry.circuit.closed:
            return entry.health
        return replace(entry.health, circuit=entry.circuit.state(now))

    def note_success(self, target: Target, latency_ms: float) -> None:
        """`latency_ms` is the time to the first output of a stream, or to the end of a whole answer."""
        now = self._clock()
        entry = self._entry(target)
        entry.window.note(now, (bucket_of(latency_ms), OUTCOMES))
        entry.touch()
        if entry.circuit.note_success(now, started=now - latency_ms / 1000):
            self._announce(target, entry)

    def note_failure(
        self, target: Target, kind: FailureKind, latency_ms: float, retry_after: float | None = None
    ) -> None:
        """`retry_after` in seconds, as the provider said it. A request that was itself at fault is not counted."""
        now = self._clock()
        entry = self._entry(target)
        if kind is FailureKind.REJECTED:
            entry.claimed_until = 0.0
            return
        # The time to a refusal says nothing about how long an answer takes. A time-out does: at least so long.
        slow = (bucket_of(latency_ms),) if kind is FailureKind.TIMEOUT else ()
        entry.window.note(now, (*slow, OUTCOMES, FAILURES))
        entry.touch()
        started = now - latency_ms / 1000
        if entry.circuit.note_failure(now, kind, started=started, draw=self._draw(), retry_after=retry_after):
            self._announce(target, entry)

    async def claim_probe(self, target: Target) -> bool:
        """Whether the caller may try a target that has rested: true for one caller at a time."""
        entry = self._entry(target)
        now = self._clock()
        state = entry.circuit.state(now)
        if state is not CircuitState.HALF_OPEN:
            return state is CircuitState.CLOSED
        if now < entry.claimed_until:
            return False
        entry.claimed_until = now + PROBE_SECONDS
        return True

    async def follow(self) -> None:
        """Runs as long as the worker."""
        await asyncio.sleep(inf)

    async def close(self) -> None:
        self._entries.clear()

    def _entry(self, target: Target) -> _Entry:
        entry = self._entries.get(target)
        if entry is None:
            entry = _Entry()
            if len(self._entries) >= self._max_targets:
                self._entries.popitem(last=False)
            self._entries[target] = entry
        else:
            self._entries.move_to_end(target)
        return entry

    def _announce(self, target: Target, entry: _Entry) -> None:
        """The circuit changed, so that an earlier claim is void."""
        entry.claimed_until = 0.0
