"""Accepts connections one at a time and, once it has some, not too eagerly, so that workers on one socket share them.

A server that accepts until the queue is empty, as asyncio's and uvloop's do, hands all of a burst to whichever worker
woke first: of 64 connections one of two workers got between 0 and 25. A socket per worker (SO_REUSEPORT) would share
evenly too, but leave the connections in a dead worker's queue waiting for its successor.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable

logger = logging.getLogger("config.web")

_EXHAUSTED_PAUSE_SECONDS = 0.5
# Time for another worker to be scheduled: a worker with this many connections lets the others go first.
_MODEST_CONNECTIONS = 8
_MODEST_PAUSE_SECONDS = 0.001


class Acceptor:
    """`connections` tells how many this worker has open."""

    def __init__(
        self, listening: socket.socket, protocol: Callable[[], asyncio.Protocol], connections: Callable[[], int]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._listening = listening
        self._protocol = protocol
        self._connections = connections
        self._opening: set[asyncio.Task[object]] = set()
        listening.setblocking(False)
        self._resume()

    def close(self) -> None:
        """Nothing is accepted from here on."""
        if self._listening.fileno() >= 0:
            self._loop.remove_reader(self._listening.fileno())
            self._listening.close()

    def _resume(self) -> None:
        if self._listening.fileno() >= 0:
            self._loop.add_reader(self._listening.fileno(), self._accept)

    def _pause(self, seconds: float) -> None:
        self._loop.remove_reader(self._listening.fileno())
        self._loop.call_later(seconds, self._resume)

    def _accept(self) -> None:
        try:
            connection, _ = self._listening.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return  # another worker was faster, or the client has left
        except OSError as error:
            # Out of file descriptors: the socket stays readable, so trying at once would only burn the processor.
            logger.error("connection.refused error=%s", error.strerror)
            self._pause(_EXHAUSTED_PAUSE_SECONDS)
            return
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        opening = self._loop.create_task(self._loop.connect_accepted_socket(self._protocol, connection))
        self._opening.add(opening)
        opening.add_done_callback(self._opening.discard)
        if self._connections() >= _MODEST_CONNECTIONS:
            self._pause(_MODEST_PAUSE_SECONDS)
