"""A worker's batches that still take requests.

A batch with an admission is sent in the same turn of the event loop. Settlements wait for their project's next
admission.
"""

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
        batch = self._open.get(project)
        if batch is not None and project not in self._waiting:
            return batch
        if batch is None:
            batch = self._open[project] = self._new_batch(project)
        self._send(project, batch)
        return batch

    def waiting(self, project: str, patience: float = 1.0) -> Batch:
        """Returns the batch that is sent with the next admission, or after MAX_WAIT_SECONDS times `patience`.

        Raises RedisAwayError.
        """
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
        if self._open.get(project) is not batch:
            return
        if project in self._waiting:
            with suppress(RedisAwayError):
                self._send(project, batch)
        self._open.pop(project, None)

    def send_all(self) -> None:
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
        if self._timer is None or due < self._fires_at:
            if self._timer is not None:
                self._timer.cancel()
            self._fires_at = due
            self._timer = self._loop.call_at(due, self._send_overdue)
