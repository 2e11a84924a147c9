"""Names in Redis. Everything of a project has one hash tag, so that a cluster keeps it on one node.

A scope is what has a spend of its own: a project's month or a session. `held` are its reservations, by when they end.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_MINUTE_US = 60_000_000


@dataclass(frozen=True, slots=True)
class Scope:
    """`session_id` empty: the project's month that begins with `month` (YYYY-MM)."""

    project: str
    month: str = ""
    session_id: str = ""

    @property
    def spend(self) -> str:
        return f"{self._prefix}:spend"

    @property
    def held(self) -> str:
        return f"{self._prefix}:held"

    @property
    def _prefix(self) -> str:
        if self.month:
            return f"svc:limits:{{{self.project}}}:month:{self.month}"
        # Clients choose the ids.
        digest = hashlib.blake2b(self.session_id.encode("utf-8", "replace"), digest_size=16).hexdigest()
        return f"svc:limits:{{{self.project}}}:session:{digest}"


def month_of(arrived_us: int) -> str:
    """The UTC month of a Unix time in microseconds."""
    return datetime.fromtimestamp(arrived_us / 1_000_000, UTC).strftime("%Y-%m")


def month_limits(month: str) -> tuple[datetime, datetime]:
    """When a month (YYYY-MM) begins and when the next one does."""
    start = datetime.strptime(month, "%Y-%m").replace(tzinfo=UTC)
    return start, (start + timedelta(days=32)).replace(day=1)


def minute_of(arrived_us: int) -> int:
    return arrived_us // _MINUTE_US


def seconds_left(arrived_us: int) -> int:
    """Of the minute in which a request arrived, rounded up."""
    return -(-(_MINUTE_US - arrived_us % _MINUTE_US) // 1_000_000)


def requests_key(project: str, minute: int) -> str:
    return f"svc:limits:{{{project}}}:requests:{minute}"


def tokens_key(project: str, minute: int) -> str:
    return f"svc:limits:{{{project}}}:tokens:{minute}"
