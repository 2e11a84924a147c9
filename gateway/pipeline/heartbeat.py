from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from django.conf import settings


class Heartbeat:
    """Calls `beat` after each silence.

    A stream has one timer, and no task until a silence is long enough. `last` is the time of the event loop at which
    something was sent most recently.
    """

    __slots__ = ("_beat", "_handle", "_interval", "_loop", "_task", "last")

    def __init__(self, beat: Callable[[], Awaitable[None]], loop: asyncio.AbstractEventLoop) -> None:
        self._beat = beat
        self._loop = loop
        self._interval: float = settings.HEARTBEAT_SECONDS
        self.last = loop.time()
        self._task: asyncio.Task[None] | None = None
        self._handle = loop.call_later(self._interval, self._tick)

    def touch(self) -> None:
        self.last = self._loop.time()

    async def settled(self) -> None:
        """Waits for a heartbeat that is being sent: it has to go out whole before anything else."""
        if self._task is not None and not self._task.done():
            await asyncio.wait((self._task,))

    def stop(self) -> None:
        self._handle.cancel()
        if self._task is not None:
            self._task.cancel()

    def _tick(self) -> None:
        silence = self._loop.time() - self.last
        if silence >= self._interval and (self._task is None or self._task.done()):
            self._task = self._loop.create_task(self._send())
        wait = self._interval if silence >= self._interval else self._interval - silence
        self._handle = self._loop.call_later(wait, self._tick)

    async def _send(self) -> None:
        await self._beat()
        self.touch()
