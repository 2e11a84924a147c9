"""The names of Redis keys. All keys of a project have one hash tag, so that a cluster keeps them on one node. A scope
is an entity with a spend: a project's month or a session. Its `reservations` are sorted by their expiry."""

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
    """A session, or with an empty `session_id` the project's month `month` (YYYY-MM). `spend` and `reservations` are
    its keys, `packed` is both in the form of a command."""

    project: str
    month: str = ""
    session_id: str = ""
    spend: str = field(init=False, compare=False, repr=False)
    reservations: str = field(init=False, compare=False, repr=False)
    packed: bytes = field(init=False, compare=False, repr=False)
    _hash: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.month:
            prefix = f"svc:limits:{{{self.project}}}:month:{self.month}"
        else:
            # Clients choose session ids, so the key holds a digest.
            digest = hashlib.blake2b(self.session_id.encode("utf-8", "replace"), digest_size=16).hexdigest()
            prefix = f"svc:limits:{{{self.project}}}:session:{digest}"
        object.__setattr__(self, "spend", f"{prefix}:spend")
        object.__setattr__(self, "reservations", f"{prefix}:held")
        object.__setattr__(self, "packed", packed((self.spend, self.reservations)))
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
    """Returns the UTC month of a Unix time in microseconds."""
    return _month_of_hour(arrived_us // _HOUR_US)


@lru_cache(maxsize=64)
def _month_of_hour(hour: int) -> str:
    return datetime.fromtimestamp(hour * 3600, UTC).strftime("%Y-%m")


def month_limits(month: str) -> tuple[datetime, datetime]:
    """Returns the beginning of a month (YYYY-MM) and that of the next."""
    start = datetime.strptime(month, "%Y-%m").replace(tzinfo=UTC)
    return start, (start + timedelta(days=32)).replace(day=1)


def minute_of(arrived_us: int) -> int:
    return arrived_us // MINUTE_US


def seconds_left(arrived_us: int) -> int:
    """Returns the seconds until the end of the request's minute, rounded up."""
    return -(-(MINUTE_US - arrived_us % MINUTE_US) // 1_000_000)


def requests_key(project: str, minute: int) -> str:
    return f"svc:limits:{{{project}}}:requests:{minute}"


def tokens_key(project: str, minute: int) -> str:
    return f"svc:limits:{{{project}}}:tokens:{minute}"
