"""What the connections of one worker share: their limits, a coarse clock, and the one timer that looks after them all.

A timer for each head and each body would cost more than reading them. Here a connection notes when it began to wait, by
a clock that stands still between two looks, and one look after another finds those that have waited for too long.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, Self
from weakref import WeakKeyDictionary

from django.conf import settings
from uvicorn.server import ServerState

_LONGEST_PAUSE_SECONDS = 1.0
# Paths that give up a slow body themselves and record that they did.
_WATCHED = ("/api/gateway/", "/api/agent/chat")


@dataclass(frozen=True, slots=True)
class Limits:
    head_bytes: int
    headers: int
    url_bytes: int
    head_seconds: float
    body_seconds: float
    watched_body_seconds: float

    @classmethod
    def of_settings(cls) -> Self:
        return cls(
            head_bytes=settings.HTTP_HEAD_BYTES,
            headers=settings.HTTP_HEADERS,
            url_bytes=settings.HTTP_URL_BYTES,
            head_seconds=settings.HTTP_HEAD_SECONDS,
            body_seconds=settings.MANAGEMENT_BODY_SECONDS,
            watched_body_seconds=settings.GATEWAY_BODY_SECONDS + 2 * _LONGEST_PAUSE_SECONDS,
        )

    def seconds_for_body(self, path: str) -> float:
        return self.watched_body_seconds if path.startswith(_WATCHED) else self.body_seconds

    @property
    def pause_seconds(self) -> float:
        """Between two looks: a peer is given up that much later than promised at most."""
        return min(_LONGEST_PAUSE_SECONDS, self.head_seconds / 4, self.body_seconds / 4)


class Watched(Protocol):
    def look(self, now: float) -> None:
        """Gives the peer up if it has waited for too long; `now` in seconds of the event loop's clock."""


class Guard:
    """`now` is the time of the last look: a connection that notes it has waited for less than it seems."""

    def __init__(self, loop: asyncio.AbstractEventLoop, connections: Iterable[Watched], limits: Limits) -> None:
        self.limits = limits
        self.now = loop.time()
        self._loop = loop
        self._connections = connections
        # What seems to have lasted so long may have begun a whole pause after the time it noted.
        self.grace_seconds = limits.pause_seconds
        self._loop.call_later(limits.pause_seconds, self._look)

    def _look(self) -> None:
        # First of all: whatever happens with one connection, the others are looked at again.
        self._loop.call_later(self.limits.pause_seconds, self._look)
        self.now = self._loop.time()
        for connection in list(self._connections):
            connection.look(self.now)


_GUARDS: WeakKeyDictionary[ServerState, Guard] = WeakKeyDictionary()


def guard_of(state: ServerState, loop: asyncio.AbstractEventLoop) -> Guard:
    """The guard of all connections in `state`, made with the first of them."""
    guard = _GUARDS.get(state)
    if guard is None:
        guard = _GUARDS[state] = Guard(loop, state.connections, Limits.of_settings())  # type: ignore[arg-type]  # ours
    return guard
