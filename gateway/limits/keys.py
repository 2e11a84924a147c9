"""Names in Redis. Everything of a project has one hash tag, so that a cluster keeps it on one node.

A scope is what has a spend of its own: a project's month or a session. `held` are its reservations, by when they end.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from typing_extensions import override

from gateway.limits.scripts import packed

MINUTE_US = 60_000_000
_HOUR_US = 3_600_000_000


@dataclass(frozen=True, slots=True)
class Scope:
    """`session_id` empty: the project's month that begins with `month` (YYYY-MM). `spend` and `held` are its keys,
    `packed` both of them as commands hold them."""

    project: str
    month: str = ""
    session_id: str = ""
    spend: str = field(init=False, compare=False, repr=False)
    held: str = field(init=False, compare=False, repr=False)
    packed: bytes = field(init=False, compare=False, repr=False)
    _hash: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.month:
            prefix = f"svc:limits:{{{self.project}}}:month:{self.month}"
        else:
            # Clients choose the ids.
            digest = hashlib.blake2b(self.session_id.encode("utf-8", "replace"), digest_size=16).hexdigest()
            prefix = f"svc:limits:{{{self.project}}}:session:{digest}"
        object.__setattr__(self, "spend", f"{prefix}:spend")
        object.__setattr__(self, "held", f"{prefix}:held")
        object.__setattr__(self, "packed", packed((self.spend, self.held)))
        object.__setattr__(self, "_hash", hash((self.project, self.month, self.session_id)))

    @override
    def __hash__(self) -> int:
        return self._hash


@lru_cache(maxsize=20_000)
def month_scope(project: str, month: str) -> Scope:
    return Scope(project, month=month)


@lru_cache(maxsize=20_000)
def session_scope(project: str, session_id: str) -> Scope:
    return Scope(project, session_id=session_id)


def month_of(arrived_us: int) -> str:
    """The UTC month of a Unix time in microseconds."""
    return _month_of_hour(arrived_us // _HOUR_US)


@lru_cache(maxsize=64)
def _month_of_hour(hour: int) -> str:
    return datetime.fromtimestamp(hour * 3600, UTC).strftime("%Y-%m")


def month_limits(month: str) -> tuple[datetime, datetime]:
    """When a month (YYYY-MM) begins and when the next one does."""
    start = datetime.strptime(month, "%Y-%m").replace(tzinfo=UTC)
    return start, (start + timedelta(days=32)).replace(day=1)


def minute_of(arrived_us: int) -> int:
    return arrived_us // MINUTE_US


def seconds_left(arrived_us: int) -> int:
    """Of the minute in which a request arrived, rounded up."""
    return -(-(MINUTE_US - arrived_us % MINUTE_US) // 1_000_000)


def requests_key(project: str, minute: int) -> str:
    return f"svc:limits:{{{project}}}:requests:{minute}"


def tokens_key(project: str, minute: int) -> str:
    return f"svc:limits:{{{project}}}:tokens:{minute}"
