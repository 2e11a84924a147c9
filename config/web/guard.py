"""The guard of one worker's connections: their limits, a coarse clock, and one timer that checks all of them.

A timer for each head and each body would cost more than reading them. A connection notes when it began to wait, by a
clock that advances once per check, and each check closes the connections that have waited for too long.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, Self
from weakref import WeakKeyDictionary

from django.conf import settings
from uvicorn.server import ServerState

_MAX_PAUSE_SECONDS = 1.0
# The application itself ends slow bodies on these paths and records that it did.
_WATCHED = ("/api/gateway/", "/api/agent/chat")
_FILES = re.compile(r"/api/gateway/.+/(?:files|batches)/?\Z")


@dataclass(frozen=True, slots=True)
class Limits:
    head_bytes: int
    headers: int
    url_bytes: int
    head_seconds: float
    body_seconds: float
    watched_body_seconds: float
    file_seconds: float

    @classmethod
    def of_settings(cls) -> Self:
        return cls(
            head_bytes=settings.HTTP_HEAD_BYTES,
            headers=settings.HTTP_HEADERS,
            url_bytes=settings.HTTP_URL_BYTES,
            head_seconds=settings.HTTP_HEAD_SECONDS,
            body_seconds=settings.MANAGEMENT_BODY_SECONDS,
            watched_body_seconds=settings.GATEWAY_BODY_SECONDS + 2 * _MAX_PAUSE_SECONDS,
            file_seconds=settings.GATEWAY_FILE_SECONDS + 2 * _MAX_PAUSE_SECONDS,
        )

    def seconds_for_body(self, path: str) -> float:
        if _FILES.match(path):
            return self.file_seconds
        return self.watched_body_seconds if path.startswith(_WATCHED) else self.body_seconds

    @property
    def pause_seconds(self) -> float:
        """The seconds between two checks, which is how late a slow peer is closed at most."""
        return min(_MAX_PAUSE_SECONDS, self.head_seconds / 4, self.body_seconds / 4)


class Watched(Protocol):
    def look(self, now: float) -> None: ...


class Guard:
    """`now` is the time of the last check, so a wait is up to one pause shorter than it seems."""

    def __init__(self, loop: asyncio.AbstractEventLoop, connections: Iterable[Watched], limits: Limits) -> None:
        self.limits = limits
        self.now = loop.time()
        self._loop = loop
        self._connections = connections
        # A wait that seems this long may have begun up to one pause after the noted time.
        self.grace_seconds = limits.pause_seconds
        self._loop.call_later(limits.pause_seconds, self._look)

    def _look(self) -> None:
        # The next check is scheduled first: an exception at one connection must not end the checks of the others.
        self._loop.call_later(self.limits.pause_seconds, self._look)
        self.now = self._loop.time()
        for connection in list(self._connections):
            connection.look(self.now)


_GUARDS: WeakKeyDictionary[ServerState, Guard] = WeakKeyDictionary()


def guard_of(state: ServerState, loop: asyncio.AbstractEventLoop) -> Guard:
    guard = _GUARDS.get(state)
    if guard is None:
        guard = _GUARDS[state] = Guard(loop, state.connections, Limits.of_settings())  # type: ignore[arg-type]  # ours
    return guard
