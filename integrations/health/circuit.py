"""The circuit breaker of one target. It has no clock, no random numbers and no I/O of its own.

A circuit opens when half of at least five outcomes within 30 seconds failed. It stays open for 5 seconds, doubling up
to a minute each time it opens again without a success in between, and then lets one request probe. A provider that
sends a Retry-After gets no request until then.
"""

from __future__ import annotations

from collections import deque
from math import floor
from typing import NamedTuple

from integrations.health.targets import CircuitState
from integrations.providers.errors import REQUEST_REFUSALS, FailureKind

OUTCOMES_TO_OPEN = 5
SHARE_TO_OPEN = 0.5
OUTCOME_SECONDS = 30.0
FIRST_OPEN_SECONDS = 5.0
MAX_OPEN_SECONDS = 60.0
# The time that a circuit stays open is shortened at random by up to a fifth, so that not all targets are tried again in
# the same instant.
JITTER = 0.2
# A Retry-After of up to five seconds is handled by the retry; a longer one opens the circuit, for at most ten minutes.
SHORT_RETRY_AFTER = 5.0
MAX_RETRY_AFTER = 600.0

# A failure by the request's own fault proves nothing about the provider and is not counted.
COUNTED = frozenset(FailureKind) - REQUEST_REFUSALS

_CELL_SECONDS = 5.0


class CircuitRecord(NamedTuple):
    """The state of a circuit that workers exchange. The record with the greater `version` wins; the version grows with
    every change, like a clock in ms. `trips` counts the openings since the circuit was last closed, 0 when it is
    closed. Times are Unix seconds."""

    version: int
    trips: int
    opened_at: float
    open_until: float


class Outcomes(NamedTuple):
    """The outcomes that one worker counted towards the opening of a circuit from `since` (Unix seconds) on."""

    since: float
    outcomes: int
    failures: int


CLOSED = CircuitRecord(version=0, trips=0, opened_at=0.0, open_until=0.0)


class Circuit:
    """Methods that take an outcome return True if the circuit changed, which must then be announced to the other
    workers."""

    __slots__ = ("_cells", "_own", "record")

    def __init__(self) -> None:
        self.record = CLOSED
        self._own: Outcomes | None = None
        self._cells: deque[list[int]] = deque()  # The lists are [cell, outcomes, failures], oldest first.

    @property
    def closed(self) -> bool:
        return self.record.trips == 0

    def state(self, now: float) -> CircuitState:
        if self.record.trips == 0:
            return CircuitState.CLOSED
        return CircuitState.OPEN if now < self.record.open_until else CircuitState.HALF_OPEN

    def note_success(self, now: float, *, started: float) -> bool:
        """A success of a request sent before the circuit opened proves nothing; a later one closes the circuit."""
        if self.closed:
            self._count_own(now, 1, 0)
            return False
        if started < self.record.opened_at:
            return False
        self._change(now, trips=0, seconds=0.0)
        return True

    def note_successes(self, now: float, count: int) -> None:
        if self.closed:
            self._count_own(now, count, 0)

    def note_failure(
        self, now: float, kind: FailureKind, *, started: float, draw: float, retry_after: float | None = None
    ) -> bool:
        """`draw` is a random number from 0 to 1 that varies how long the circuit stays open."""
        if kind not in COUNTED:
            return False
        if kind is FailureKind.RATE_LIMITED and retry_after is not None and retry_after > SHORT_RETRY_AFTER:
            return self._open_for(now, min(retry_after, MAX_RETRY_AFTER))
        if self.closed:
            self._count_own(now, 1, 1)
            return self._open_if_due(now, draw)
        if self.state(now) is CircuitState.OPEN or started < self.record.opened_at:
            return False
        self._open(now, draw)
        return True

    def note_others(self, now: float, seen: Outcomes, *, draw: float) -> bool:
        if not self.closed or seen.since * 1000 < self.record.version:
            return False
        self._count(now, seen.outcomes, seen.failures)
        return seen.failures > 0 and self._open_if_due(now, draw)

    def take_own(self) -> Outcomes | None:
        taken, self._own = self._own, None
        return taken

    def adopt(self, record: CircuitRecord) -> bool:
        if record <= self.record:
            return False
        self.record = record
        self._forget()
        return True

    def _open_for(self, now: float, seconds: float) -> bool:
        # Many parallel requests get nearly the same Retry-After; the first of them changes the circuit and the others
        # need not.
        if now + seconds <= self.record.open_until + 1.0:
            return False
        self._change(now, trips=max(1, self.record.trips), seconds=seconds)
        return True

    def _open_if_due(self, now: float, draw: float) -> bool:
        outcomes = sum(cell[1] for cell in self._cells)
        failures = sum(cell[2] for cell in self._cells)
        if outcomes < OUTCOMES_TO_OPEN or failures < SHARE_TO_OPEN * outcomes:
            return False
        self._open(now, draw)
        return True

    def _open(self, now: float, draw: float) -> None:
        trips = self.record.trips + 1
        # The exponent is bounded before the power is computed, since a target may stay broken for days.
        seconds = min(FIRST_OPEN_SECONDS * 2.0 ** min(trips - 1, 10), MAX_OPEN_SECONDS)
        self._change(now, trips=trips, seconds=seconds * (1 - JITTER * draw))

    def _change(self, now: float, *, trips: int, seconds: float) -> None:
        version = max(self.record.version + 1, floor(now * 1000))
        opened_at = (now, now + seconds) if trips else (0.0, 0.0)
        self.record = CircuitRecord(version, trips, *opened_at)
        self._forget()

    def _forget(self) -> None:
        self._cells.clear()
        self._own = None

    def _count_own(self, now: float, outcomes: int, failures: int) -> None:
        since, outcomes_before, failures_before = self._own or (now, 0, 0)
        self._own = Outcomes(since, outcomes_before + outcomes, failures_before + failures)
        self._count(now, outcomes, failures)

    def _count(self, now: float, outcomes: int, failures: int) -> None:
        cell = floor(now / _CELL_SECONDS)
        if not self._cells or self._cells[-1][0] != cell:
            self._cells.append([cell, 0, 0])
            oldest = cell - floor(OUTCOME_SECONDS / _CELL_SECONDS)
            while self._cells[0][0] <= oldest:
                self._cells.popleft()
        self._cells[-1][1] += outcomes
        self._cells[-1][2] += failures
