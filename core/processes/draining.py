"""Draining: a process that is about to stop still serves requests, and asks load balancers to send no more."""

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
    """The draining state of one process. `begin` may be called repeatedly and from a signal handler.

    `is_supervised` says that whoever sends SIGTERM to this process has waited until load balancers leave the host out,
    so that the process does not wait once more.
    """

    def __init__(self) -> None:
        self.is_supervised = False
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
        """Registers `listener`, which is called once when draining begins."""
        self._listeners.append(listener)
        if self.is_on:
            listener()

    def seconds_left(self, seconds: float) -> float:
        """Returns the seconds until draining has been on for `seconds`."""
        return seconds if self._since is None else max(self._since + seconds - time.monotonic(), 0.0)


draining = Drain()


def delay_termination(drain: Drain, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
    """Makes SIGTERM begin draining first, and call the server's own handler after `seconds`, or at once for a second
    SIGTERM and in a supervised process. Has no effect where no server of this process handles the signal."""
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
