"""Accepts some connections at a time, with a short pause when a worker has many: workers share a socket evenly.

A server that accepts until the queue is empty, as asyncio's and uvloop's do, hands a whole burst to the worker that
woke first: of 64 connections one of two workers got between 0 and 25. A server that accepts one in each turn of its
loop lets the last of a burst wait for as many turns, and a turn is long under load. So a worker accepts in proportion
to its open connections. A socket per worker (SO_REUSEPORT) would share evenly too, but leave the connections in a dead
worker's queue waiting for its successor.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from contextlib import suppress

from config.web.refusals import WorkerFullError, as_bytes

logger = logging.getLogger("config.web")

_EXHAUSTED_PAUSE_SECONDS = 0.5
# For each so many open connections, a worker accepts one more in a turn: more would share a burst less evenly.
_OPEN_FOR_ONE_MORE = 4
# The pause of a worker with this many connections in seconds: another worker gets time to accept first.
_MODEST_CONNECTIONS = 8
_MODEST_PAUSE_SECONDS = 0.001
# A full worker pauses longer, so that the other workers accept a client before this one refuses it.
_FULL_PAUSE_SECONDS = 0.005
# The seconds a refused client has to read the answer: closing with unread data makes the kernel discard the answer.
_REFUSED_SECONDS = 1.0


class Acceptor:
    """`connections` returns how many connections are open. Beyond `max_connections`, clients get 503."""

    def __init__(
        self,
        listening: socket.socket,
        protocol: Callable[[], asyncio.Protocol],
        connections: Callable[[], int],
        *,
        max_connections: int,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._listening = listening
        self._protocol = protocol
        self._connections = connections
        self._max_connections = max_connections
        self._is_full = False
        self._refused: set[socket.socket] = set()
        self._opening: set[asyncio.Task[object]] = set()
        listening.setblocking(False)
        self._resume()

    def close(self) -> None:
        if self._listening.fileno() >= 0:
            self._loop.remove_reader(self._listening.fileno())
            self._listening.close()
        for refused in list(self._refused):
            self._end(refused)

    def _resume(self) -> None:
        if self._listening.fileno() >= 0:
            self._loop.add_reader(self._listening.fileno(), self._accept)

    def _pause(self, seconds: float) -> None:
        self._loop.remove_reader(self._listening.fileno())
        self._loop.call_later(seconds, self._resume)

    def _accept(self) -> None:
        has = self._connections()
        room = self._max_connections - has - len(self._opening)
        for _ in range(min(1 + has // _OPEN_FOR_ONE_MORE, max(room, 1))):
            if not self._accept_one():
                return
        if has >= _MODEST_CONNECTIONS:
            self._pause(_MODEST_PAUSE_SECONDS)

    def _accept_one(self) -> bool:
        """Returns False if there is none, or no room for one."""
        try:
            connection, _ = self._listening.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return False  # Another worker accepted the connection first, or the client has left.
        except OSError as error:
            # The process is out of file descriptors: the socket stays readable, so retrying would only waste CPU time.
            logger.error("connection.refused error=%s", error.strerror)
            self._pause(_EXHAUSTED_PAUSE_SECONDS)
            return False
        connection.setblocking(False)
        if self._full():
            self._refuse(connection)
            self._pause(_FULL_PAUSE_SECONDS)
            return False
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        opening = self._loop.create_task(self._loop.connect_accepted_socket(self._protocol, connection))
        self._opening.add(opening)
        opening.add_done_callback(self._opening.discard)
        return True

    def _full(self) -> bool:
        is_full = self._connections() >= self._max_connections
        if is_full != self._is_full:
            self._is_full = is_full
            logger.warning("connections.%s most=%d", "full" if is_full else "free", self._max_connections)
        return is_full

    def _refuse(self, connection: socket.socket) -> None:
        full = WorkerFullError("This worker has no connection left; try again", headers={"retry-after": "1"})
        with suppress(OSError):  # The client has left.
            connection.send(as_bytes(full))
            connection.shutdown(socket.SHUT_WR)
        self._refused.add(connection)
        self._loop.call_later(_REFUSED_SECONDS, self._end, connection)

    def _end(self, refused: socket.socket) -> None:
        self._refused.discard(refused)
        refused.close()
