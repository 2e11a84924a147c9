from __future__ import annotations

import asyncio
import logging
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

logger = logging.getLogger("core.draining")


class Drain:
    """`begin` may be called repeatedly and from a signal handler.

    With `is_supervised`, the sender of SIGTERM has already waited for load balancers, so the process does not wait
    again.
    """

    def __init__(self) -> None:
        self.is_supervised = False
        # What is still under way is cancelled, and has a moment to say so to its client.
        self.is_over = False
        self._since: float | None = None
        self._listeners: list[Callable[[], None]] = []

    @property
    def is_on(self) -> bool:
        return self._since is not None

    def begin(self) -> None:
        if self._since is None:
            self._since = time.monotonic()
            for listener in self._listeners:
                listener()

    def on_begin(self, listener: Callable[[], None]) -> None:
        self._listeners.append(listener)
        if self.is_on:
            listener()

    def seconds_left(self, seconds: float) -> float:
        return seconds if self._since is None else max(self._since + seconds - time.monotonic(), 0.0)


draining = Drain()


def delay_termination(drain: Drain, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
    """On SIGTERM, begins draining and calls the server's own handler after `seconds`; at once for a second SIGTERM or
    in a supervised process. Does nothing if no server of this process handles the signal."""
    handler: Any = signal.getsignal(signal.SIGTERM)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        return

    def terminate(number: int, frame: FrameType | None) -> None:
        # A supervised worker may be starting, and not have seen yet that draining has begun.
        at_once = drain.is_on or drain.is_supervised
        left = drain.seconds_left(seconds)
        drain.begin()
        if at_once or left <= 0:
            handler(number, frame)
        else:
            loop.call_soon_threadsafe(loop.call_later, left, handler, number, None)

    signal.signal(signal.SIGTERM, terminate)
