"""The names of Redis keys. A project's keys share a hash tag, so that a cluster keeps them on one node.

The `reservations` of a scope are sorted by expiry.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from gateway.limits.scripts import packed

MINUTE_US = 60_000_000
_HOUR_US = 3_600_000_000
# Begins the names of what a worker has leased ahead, among the reservations of requests.
ALLOWANCE_PREFIX = "allowance:"


@dataclass(frozen=True, slots=True)
class Scope:
    """An entity with a spend.

    With a `month` (YYYY-MM): the project, a team, an API key or an end user in that month. With an empty `month`: a
    session, or a team or API key in its lifetime. `spend` and `reservations` are its keys, `packed` is both in the form
    of a command.
    """

    project: str
    month: str = ""
    session_id: str = ""
    key_id: int = 0
    user_id: str = ""
    team_id: int = 0
    spend: str = field(init=False, compare=False, repr=False)
    reservations: str = field(init=False, compare=False, repr=False)
    packed: bytes = field(init=False, compare=False, repr=False)
    _hash: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        prefix = f"svc:limits:{{{self.project}}}:{self._name()}"
        object.__setattr__(self, "spend", f"{prefix}:spend")
        object.__setattr__(self, "reservations", f"{prefix}:held")
        object.__setattr__(self, "packed", packed((self.spend, self.reservations)))
        named = self.project, self.month, self.session_id, self.key_id, self.user_id, self.team_id
        object.__setattr__(self, "_hash", hash(named))

    def _name(self) -> str:
        if self.session_id:
            return f"session:{_digest(self.session_id)}"
        caller = caller_part(self.key_id, self.user_id, self.team_id)
        return f"{caller}month:{self.month}" if self.month else f"{caller}total"

    def __hash__(self) -> int:
        return self._hash


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest()


def caller_part(key_id: int = 0, user_id: str = "", team_id: int = 0) -> str:
    if team_id:
        return f"team:{team_id}:"
    if key_id:
        return f"key:{key_id}:"
    return f"user:{_digest(user_id)}:" if user_id else ""


@lru_cache(maxsize=20_000)
def session_scope(project: str, session_id: str) -> Scope:
    return Scope(project, session_id=session_id)


def month_of(arrived_us: int) -> str:
    return _month_of_hour(arrived_us // _HOUR_US)


@lru_cache(maxsize=64)
def _month_of_hour(hour: int) -> str:
    return datetime.fromtimestamp(hour * 3600, UTC).strftime("%Y-%m")


def month_limits(month: str) -> tuple[datetime, datetime]:
    start = datetime.strptime(month, "%Y-%m").replace(tzinfo=UTC)
    return start, (start + timedelta(days=32)).replace(day=1)


def minute_of(arrived_us: int) -> int:
    return arrived_us // MINUTE_US


def seconds_left(arrived_us: int) -> int:
    return -(-(MINUTE_US - arrived_us % MINUTE_US) // 1_000_000)


def requests_key(project: str, minute: int, caller: str = "") -> str:
    return f"svc:limits:{{{project}}}:{caller}requests:{minute}"


def tokens_key(project: str, minute: int, caller: str = "") -> str:
    return f"svc:limits:{{{project}}}:{caller}tokens:{minute}"


def leased_key(project: str) -> str:
    return f"svc:limits:{{{project}}}:leased"


def open_key(project: str, caller: str) -> str:
    return f"svc:limits:{{{project}}}:{caller}open"
