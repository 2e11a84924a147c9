"""The batches of a worker that still take requests. Those with an admission are sent in the same turn of the loop;
settlements that nobody waits for stay until the next admission of their project, which takes them along."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from gateway.limits.batch import Batch
from gateway.limits.channel import RedisAwayError
from gateway.limits.connection import Connection

# A settlement is sent alone after this time (docs/limits.md). At 300 requests a second an admission comes earlier
# nearly always.
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
        # The projects whose batches have only settlements and are not handed to the connection yet, with the time of
        # the first settlement; the oldest comes first.
        self._waiting: dict[str, float] = {}
        self._timer: asyncio.TimerHandle | None = None

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

    def waiting(self, project: str) -> Batch:
        """Returns the batch that is sent with the next admission, or after MAX_WAIT_SECONDS. Raises RedisAwayError."""
        batch = self._open.get(project)
        if batch is not None:
            return batch
        if not self._connection.reaches(project):
            raise RedisAwayError
        batch = self._open[project] = self._new_batch(project)
        self._waiting[project] = self._loop.time()
        if self._timer is None:
            self._timer = self._loop.call_later(MAX_WAIT_SECONDS, self._send_overdue)
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
        latest = self._loop.time() - MAX_WAIT_SECONDS + _TIMER_SECONDS
        for project in [project for project, since in self._waiting.items() if since <= latest]:
            with suppress(RedisAwayError):
                self._send(project, self._open[project])
        if self._waiting:
            oldest = next(iter(self._waiting.values()))
            self._timer = self._loop.call_at(oldest + MAX_WAIT_SECONDS, self._send_overdue)
