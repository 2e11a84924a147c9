from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

from integrations.health.circuit import Circuit
from integrations.health.histogram import bucket_of
from integrations.health.summary import summarize
from integrations.health.targets import UNKNOWN, CircuitState, Target, TargetHealth
from integrations.health.window import OUTCOMES, SLICE_SECONDS, WINDOW_SECONDS, Window

# Clients choose the names of models, so their number is bounded. With all windows full the entries take some 40 MB.
MAX_TARGETS = 4096

# A window with more samples is not summed again for each new sample.
_FEW_SAMPLES = 50
_REVIEW_SECONDS = 0.2
# An open circuit that no request tries any more is remembered for ten minutes.
_CIRCUIT_SECONDS = 600.0
# Successes wait to be counted together, for at most half a second and up to a maximum number.
_PENDING_SECONDS = 0.5
_MAX_PENDING = 256


@dataclass(slots=True, eq=False)
class Entry:
    """`health` has the figures as of the last review of its window; the circuit's state is read separately."""

    window: Window = field(default_factory=Window)
    circuit: Circuit = field(default_factory=Circuit)
    health: TargetHealth = UNKNOWN
    noted_at: float = 0.0
    reviewed_at: float = 0.0
    stale_at: float = 0.0
    claimed_until: float = 0.0
    _changed: bool = False
    _pending: list[float] = field(default_factory=list)
    _pending_since: float = 0.0

    def add_pending(self, now: float, latency_ms: float) -> bool:
        """Notes a success under a closed circuit for later counting, so that no request waits for it. Returns True for
        the first of those that wait."""
        pending = self._pending
        if pending and (now - self._pending_since > _PENDING_SECONDS or len(pending) >= _MAX_PENDING):
            self.count_pending()
            pending = self._pending
        pending.append(latency_ms)
        if len(pending) > 1:
            return False
        self._pending_since = now
        return True

    def count_pending(self) -> None:
        pending, since = self._pending, self._pending_since
        if not pending:
            return
        self._pending = []
        self.window.note(since, [*map(bucket_of, pending), *[OUTCOMES] * len(pending)])
        self.circuit.note_successes(since, len(pending))
        self.touch(since)

    def review(self, now: float) -> None:
        self.health = summarize(self.window.totals(now), CircuitState.CLOSED)
        self._changed = False
        self.reviewed_at = now
        # Without new outcomes the figures change when the oldest slice leaves the window.
        self.stale_at = now - now % SLICE_SECONDS + SLICE_SECONDS

    def touch(self, now: float) -> None:
        self.noted_at = now
        if not self._changed:
            self._changed = True
            delay = _REVIEW_SECONDS if self.health.samples > _FEW_SAMPLES else 0.0
            self.stale_at = min(self.stale_at, self.reviewed_at + delay)

    def is_idle(self, now: float) -> bool:
        if now - self.noted_at <= WINDOW_SECONDS:
            return False
        return self.circuit.closed or now > self.circuit.record.open_until + _CIRCUIT_SECONDS


class Entries:
    def __init__(self, max_targets: int) -> None:
        self.max_targets = max_targets
        # The entries are ordered by their last use, the least recent first.
        self._entries: OrderedDict[Target, Entry] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Target]:
        return iter(self._entries)

    def get(self, target: Target) -> Entry | None:
        return self._entries.get(target)

    def use(self, target: Target) -> Entry | None:
        entry = self._entries.get(target)
        if entry is not None:
            self._entries.move_to_end(target)
        return entry

    def add(self, target: Target, now: float) -> Entry:
        if len(self._entries) >= self.max_targets:
            self._entries.popitem(last=False)
        entry = self._entries[target] = Entry()
        entry.noted_at = now
        return entry

    def drop_idle(self, now: float) -> None:
        for target in [target for target, entry in self._entries.items() if entry.is_idle(now)]:
            del self._entries[target]
