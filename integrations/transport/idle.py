"""The time that a connection may lie idle: less than its peer keeps it, which the peer says or shows.

A peer that ends a connection while a request is on its way leaves us in doubt whether it has read the request, and what
is in doubt is never sent again in silence. So that this stays rare, connections are given up before.
"""

from __future__ import annotations

import select
from collections.abc import Callable

_EPOCH_SECONDS = 600.0
# Nobody keeps connections for less: who ends one sooner when it is used has failed, and his patience is not known.
_IMPATIENT_SECONDS = 1.0
_MARGIN_SECONDS = 1.0
_ENDED = select.POLLIN | select.POLLRDHUP  # errors and hang-ups are always told


def before(seconds: float) -> float:
    """An age that is surely below the `seconds` at which a peer gives up, as seen from here."""
    return max(seconds - min(_MARGIN_SECONDS, seconds / 2), 0.0)


def promised(keep_alive: bytes) -> float | None:
    """Up to which age the header `Keep-Alive` (`timeout=5, max=100`) lets a connection be used. None without one."""
    seconds = keep_alive.lower().partition(b"timeout=")[2].partition(b",")[0].strip()
    return before(int(seconds)) if seconds.isdigit() else None


def look_for_end(descriptor: int) -> Callable[[int], list[tuple[int, int]]]:
    """Returns a function that, called with 0, returns True when the peer has ended its side of an idle connection or
    sent something, also what the event loop has not told yet. Not to be called once the connection is closed: its
    descriptor may be another's."""
    poll = select.poll()
    poll.register(descriptor, _ENDED)
    return poll.poll


class IdleAges:
    """The observed idle times of the connections to one origin. All in seconds; `most` is what we keep a connection at
    most.

    `limit` is below the youngest age at which the peer ended one that was idle, unless others of that age have served:
    a peer that starts anew ends connections of any age. What was seen is forgotten after ten to twenty minutes.
    """

    __slots__ = ("_earlier", "_most", "_until", "limit", "served")

    def __init__(self, most: float) -> None:
        self._most = most
        self.limit = most
        # How long those had been idle at most that served in this epoch and in the one before; -1 when none did.
        self.served = -1.0
        self._earlier = -1.0
        self._until = 0.0

    def ended(self, age: float, now: float) -> None:
        """The peer ended a connection while it was idle."""
        self.look(now)
        if age > self.served and age > self._earlier:
            self.limit = min(self.limit, before(age))

    def failed(self, age: float, now: float) -> None:
        """The peer ended a connection when it was used again, without an answer."""
        if age < _IMPATIENT_SECONDS:
            return
        # Others may have served at that age: those led to a more patient host behind the same name.
        self.served = min(self.served, before(age))
        self._earlier = min(self._earlier, before(age))
        self.ended(age, now)

    def look(self, now: float) -> None:
        """Begins a new epoch when it is time."""
        if now >= self._until:
            self._until = now + _EPOCH_SECONDS
            self._earlier, self.served = self.served, -1.0
            self.limit = self._most
