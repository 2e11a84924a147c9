"""The batches of a worker that still take requests. Those with an admission are sent in the same turn of the loop;
settlements that nobody waits for stay until the next admission of their project, which takes them along."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from heapq import heappop, heappush
from math import inf

from gateway.limits.batch import Batch
from gateway.limits.channel import RedisAwayError
from gateway.limits.connection import Connection

# A settlement is sent alone after this time (docs/limits.md), and after a few times as much where requests that were
# leased for come slowly.
MAX_WAIT_SECONDS = 0.05
# The loop's timers may fire as much earlier.
_TIMER_SECONDS = 0.001


class OpenBatches:
    """One batch at most for each project. `new_batch` makes an empty one."""

    def __init__(self, connection: Connection, new_batch: Callable[[str], Batch]) -> None:
        self._connection = connection
        self._new_batch = new_batch
        self._loop = asyncio.get_running_loop()
        self._open: dict[str, Batch] = {}
        # The projects whose batches have only settlements and are not handed to the connection yet, with the time at
        # which they are sent.
        self._waiting: dict[str, float] = {}
        # The same times in their order, and some that are over.
        self._times: list[tuple[float, str]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._fires_at = 0.0

    def leaving(self, project: str) -> Batch:
        """Returns the batch that is sent in this turn of the loop, or as soon as the connection is free. Raises
        RedisAwayError, after the settlements that waited have failed."""
        batch = self._open.get(project)
        if batch is not None and project not in self._waiting:
            return batch
        if batch is None:
            batch = self._open[project] = self._new_batch(project)
        self._send(project, batch)
        return batch

    def waiting(self, project: str, patience: float = 1.0) -> Batch:
        """Returns the batch that is sent with the next admission, or after MAX_WAIT_SECONDS times `patience`. Raises
        RedisAwayError."""
        batch = self._open.get(project)
        if batch is None:
            if not self._connection.reaches(project):
                raise RedisAwayError
            batch = self._open[project] = self._new_batch(project)
        elif project not in self._waiting:
            return batch
        due = self._loop.time() + MAX_WAIT_SECONDS * patience
        if due < self._waiting.get(project, inf):
            self._waiting[project] = due
            heappush(self._times, (due, project))
            self._set_timer(due)
        return batch

    def close(self, project: str, batch: Batch) -> None:
        """Stops adding requests to `batch`, which is full, sent, or has failed."""
        if self._open.get(project) is not batch:
            return
        if project in self._waiting:
            with suppress(RedisAwayError):
                self._send(project, batch)
        self._open.pop(project, None)

    def send_all(self) -> None:
        """Sends what waits, because the worker ends."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._times.clear()
        for project in list(self._waiting):
            with suppress(RedisAwayError):
                self._send(project, self._open[project])

    def _send(self, project: str, batch: Batch) -> None:
        self._waiting.pop(project, None)
        try:
            self._connection.ask(batch)
        except RedisAwayError as error:
            batch.failed(error)
            raise

    def _send_overdue(self) -> None:
        """Sends what has waited long enough; one timer serves all batches."""
        self._timer = None
        now, times = self._loop.time() + _TIMER_SECONDS, self._times
        while times and times[0][0] <= now:
            due, project = heappop(times)
            if self._waiting.get(project) == due:
                with suppress(RedisAwayError):
                    self._send(project, self._open[project])
        if times:
            self._set_timer(times[0][0])

    def _set_timer(self, due: float) -> None:
        """Makes the timer fire at `due` unless it does so earlier."""
        if self._timer is None or due < self._fires_at:
            if self._timer is not None:
                self._timer.cancel()
            self._fires_at = due
            self._timer = self._loop.call_at(due, self._send_overdue)
