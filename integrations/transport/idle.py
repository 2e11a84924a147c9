"""The time for which a connection may lie idle: less than its peer keeps it, as a header announces or experience shows.

If a peer ends a connection while a request is on its way, the gateway cannot know whether it has read the request, and
never repeats such a request automatically. To make that rare, connections are closed earlier.
"""

from __future__ import annotations

import select
from collections.abc import Callable

_EPOCH_SECONDS = 600.0
# No server keeps connections for less; one that ends a younger connection on its next use has crashed, which shows
# nothing about its idle time.
_MIN_KEEP_ALIVE_SECONDS = 1.0
_MARGIN_SECONDS = 1.0
_ENDED = select.POLLIN | select.POLLRDHUP  # The events of errors and hang-ups are always reported.


def before(seconds: float) -> float:
    return max(seconds - min(_MARGIN_SECONDS, seconds / 2), 0.0)


def keep_alive_timeout(keep_alive: bytes) -> float | None:
    """Returns the timeout of a `Keep-Alive` header (`timeout=5, max=100`); None without one."""
    seconds = keep_alive.lower().partition(b"timeout=")[2].partition(b",")[0].strip()
    return before(int(seconds)) if seconds.isdigit() else None


def look_for_end(descriptor: int) -> Callable[[int], list[tuple[int, int]]]:
    """Returns a function that, called with 0, returns a non-empty list if the peer has ended its side of an idle
    connection or sent something, even if the event loop has not noticed yet. It must not be called after the connection
    was closed, since its descriptor may belong to another one."""
    poll = select.poll()
    poll.register(descriptor, _ENDED)
    return poll.poll


class IdleAges:
    """The observed idle times of the connections to one origin, in seconds; `maximum` is the longest that a connection
    is kept.

    `limit` is below the shortest idle time after which the peer ended a connection, unless others served after that
    time: a peer that restarts ends connections of any age. Observations are forgotten after ten to twenty minutes.
    """

    __slots__ = ("_earlier", "_maximum", "_until", "limit", "served")

    def __init__(self, maximum: float) -> None:
        self._maximum = maximum
        self.limit = maximum
        # `served` and `_earlier` hold the longest idle time after which a connection served, in this epoch and in the
        # one before; -1 when none did.
        self.served = -1.0
        self._earlier = -1.0
        self._until = 0.0

    def ended(self, age: float, now: float) -> None:
        self.look(now)
        if age > self.served and age > self._earlier:
            self.limit = min(self.limit, before(age))

    def failed(self, age: float, now: float) -> None:
        if age < _MIN_KEEP_ALIVE_SECONDS:
            return
        # Other connections may have served after that time, which then lead to another host behind the same name.
        self.served = min(self.served, before(age))
        self._earlier = min(self._earlier, before(age))
        self.ended(age, now)

    def look(self, now: float) -> None:
        if now >= self._until:
            self._until = now + _EPOCH_SECONDS
            self._earlier, self.served = self.served, -1.0
            self.limit = self._maximum
