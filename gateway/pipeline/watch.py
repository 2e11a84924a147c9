"""Watches over the client: a body that dribbles in, and a client that leaves while the gateway waits for a provider."""

from __future__ import annotations

import asyncio

from gateway.protocol.reply import Receive

# Well under the second within which an abandoned upstream call has to end, and long enough that a quick answer never
# pays for a task of its own.
_DELAY_SECONDS = 0.25


class ClientWatch:
    """Cancels the task that made it when the client is too slow or disconnects; `late` and `disconnected` tell those
    from other cancellations. One timer serves for both: a quick request sets it once and cancels it once.
    """

    __slots__ = ("_deadline", "_handle", "_loop", "_owner", "_receive", "_task", "disconnected", "late")

    def __init__(self, receive: Receive, loop: asyncio.AbstractEventLoop, body_seconds: float) -> None:
        """The whole body has to be there within `body_seconds`."""
        self._receive = receive
        self._loop = loop
        self._owner = asyncio.current_task(loop)
        self._task: asyncio.Task[None] | None = None
        self._deadline: float | None = loop.time() + body_seconds
        self._handle = loop.call_later(min(_DELAY_SECONDS, body_seconds), self._look)
        self.disconnected = False
        self.late = False

    def body_arrived(self) -> None:
        """The next thing that the client can say is that it is gone."""
        self._deadline = None

    def stop(self) -> None:
        """From here on nothing is cancelled any more."""
        self._handle.cancel()
        self._owner = None
        if self._task is not None:
            self._task.cancel()

    def absorb(self) -> None:
        """Takes back the cancellation this watch asked for: the request ends in order, its record written."""
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
        message = await self._receive()
        if message["type"] == "http.disconnect" and self._owner is not None:
            self.disconnected = True
            self._owner.cancel()
