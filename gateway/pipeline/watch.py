from __future__ import annotations

import asyncio

from gateway.protocol.reply import Receive

# The delay is well under the second within which an abandoned upstream call has to end, and long enough that a quick
# answer never pays for a task of its own.
_DELAY_SECONDS = 0.25


class ClientWatch:
    """Cancels the task that made it when the client is too slow or disconnects.

    `late` and `disconnected` tell those from other cancellations. One timer serves for both: a quick request sets it
    once and cancels it once.
    """

    __slots__ = ("_deadline", "_handle", "_loop", "_owner", "_task", "disconnected", "late", "receive")

    def __init__(self, receive: Receive, loop: asyncio.AbstractEventLoop, body_seconds: float) -> None:
        self.receive = receive
        self._loop = loop
        self._owner = asyncio.current_task(loop)
        self._task: asyncio.Task[None] | None = None
        self._deadline: float | None = loop.time() + body_seconds
        self._handle = loop.call_later(min(_DELAY_SECONDS, body_seconds), self._look)
        self.disconnected = False
        self.late = False

    def body_arrived(self) -> None:
        self._deadline = None

    def stop(self) -> None:
        self._handle.cancel()
        self._owner = None
        if self._task is not None:
            self._task.cancel()

    def absorb(self) -> None:
        """Takes back the cancellation that this watch requested: the request ends in order, its record written."""
        if self._owner is not None:
            self._owner.uncancel()

    def _look(self) -> None:
        if self._deadline is None:
            self._task = self._loop.create_task(self._listen())
            return
        left = self._deadline - self._loop.time()
        if left > 0:
            self._handle = self._loop.call_later(min(_DELAY_SECONDS, left), self._look)
        elif self._owner is not None:
            self.late = True
            self._owner.cancel()

    async def _listen(self) -> None:
        message = await self.receive()
        if message["type"] == "http.disconnect" and self._owner is not None:
            self.disconnected = True
            self._owner.cancel()
