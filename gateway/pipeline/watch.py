"""Watches over the client: a body that dribbles in, and a client that leaves while the gateway waits for a provider."""

from __future__ import annotations

import asyncio

from gateway.pipeline.parse import Receive

# Well under the second within which an abandoned upstream call has to end, and long enough that a quick answer never
# pays for a task of its own.
_DELAY_SECONDS = 0.25


class ClientWatch:
    """Cancels the task that made it when the client is too slow or disconnects; `late` and `disconnected` tell those
    from other cancellations. One timer at a time: `asyncio.timeout` around every body costs twice as much."""

    __slots__ = ("_handle", "_owner", "_receive", "_task", "disconnected", "late")

    def __init__(self, receive: Receive, loop: asyncio.AbstractEventLoop) -> None:
        self._receive = receive
        self._owner = asyncio.current_task(loop)
        self._task: asyncio.Task[None] | None = None
        self._handle: asyncio.TimerHandle | None = None
        self.disconnected = False
        self.late = False

    def expect_body(self, seconds: float) -> None:
        """The whole body has to be there within `seconds`."""
        self._handle = asyncio.get_running_loop().call_later(seconds, self._expire)

    def start(self) -> None:
        """From here on: the body has been read, so the next thing the client can say is that it is gone."""
        if self._handle is not None:
            self._handle.cancel()
        self._handle = asyncio.get_running_loop().call_later(_DELAY_SECONDS, self._begin)

    def stop(self) -> None:
        """From here on nothing is cancelled any more."""
        if self._handle is not None:
            self._handle.cancel()
        self._owner = None
        if self._task is not None:
            self._task.cancel()

    def absorb(self) -> None:
        """Takes back the cancellation this watch asked for: the request ends in order, its record written."""
        if self._owner is not None:
            self._owner.uncancel()

    def _expire(self) -> None:
        if self._owner is not None:
            self.late = True
            self._owner.cancel()

    def _begin(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._listen())

    async def _listen(self) -> None:
        message = await self._receive()
        if message["type"] == "http.disconnect" and self._owner is not None:
            self.disconnected = True
            self._owner.cancel()
