"""Connections to ClickHouse, kept open between queries and lent to one query at a time.

They belong to the process, because a thread of the management API lives only as long as its request.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from clickhouse_driver import Client

from analytics.errors import AnalyticsUnavailableError

CONNECT_SECONDS = 5.0

# The embedded engine serves 256 clients in all, of which a worker's requests must not take most.
_MAX_IN_USE = 32
_WAIT_SECONDS = 20.0
_MAX_IDLE = 8
# Routers and servers drop a connection that is idle for long.
_IDLE_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class _Kind:
    url: str
    read_seconds: float


@dataclass(frozen=True, slots=True)
class _Idle:
    client: Client
    kind: _Kind
    since: float

    def is_stale(self, now: float) -> bool:
        return now - self.since > _IDLE_SECONDS


class Connections:
    """A thread-safe pool. `lent` gives the most recently used connection, so that surplus ones expire."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._room = threading.BoundedSemaphore(_MAX_IN_USE)
        self._idle: list[_Idle] = []
        self._closings = 0

    @contextmanager
    def lent(self, url: str, read_seconds: float) -> Iterator[Client]:
        """Closes the connection if an error occurs on it.

        Raises AnalyticsUnavailableError if none becomes free in time.
        """
        if not self._room.acquire(timeout=_WAIT_SECONDS):
            raise AnalyticsUnavailableError("The analytics store is busy.")
        try:
            kind, closings = _Kind(url, read_seconds), self._closings
            client = self._take(kind) or new_client(url, read_seconds)
            try:
                yield client
            except BaseException:
                client.disconnect()
                raise
            self._give_back(_Idle(client, kind, time.monotonic()), closings)
        finally:
            self._room.release()

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
            self._closings += 1
        _disconnect(idle)

    def _take(self, kind: _Kind) -> Client | None:
        now = time.monotonic()
        with self._lock:
            stale = [one for one in self._idle if one.is_stale(now)]
            self._idle = [one for one in self._idle if not one.is_stale(now)]
            fitting = [one for one in self._idle if one.kind == kind]
            if fitting:
                self._idle.remove(fitting[-1])
        _disconnect(stale)
        return fitting[-1].client if fitting else None

    def _give_back(self, one: _Idle, closings: int) -> None:
        with self._lock:
            kept = closings == self._closings
            if kept:
                self._idle.append(one)
            over = self._idle[:-_MAX_IDLE]
            self._idle = self._idle[-_MAX_IDLE:]
        _disconnect(over if kept else [one])


def _disconnect(connections: list[_Idle]) -> None:
    for one in connections:
        one.client.disconnect()


def new_client(url: str, read_seconds: float, *, connect_seconds: float = CONNECT_SECONDS) -> Client:
    # With an address, the driver takes options only from the address. The operator's own options there win.
    parts = urlsplit(url)
    options = {"connect_timeout": connect_seconds, "server_side_params": "1", **dict(parse_qsl(parts.query))}
    query = urlencode({**options, "send_receive_timeout": read_seconds})
    return Client.from_url(urlunsplit(parts._replace(query=query)))


_connections = Connections()


def connections() -> Connections:
    return _connections


def _forget() -> None:
    global _connections
    _connections = Connections()


# A forked worker must neither share its parent's connections nor shut them down, and a lock may be held at the fork.
os.register_at_fork(after_in_child=_forget)
# A server logs a connection that breaks off.
atexit.register(lambda: connections().close())
