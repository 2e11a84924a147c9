"""What hosts and inserters tell each other, in Redis.

A host offers a batch under its token. An inserter takes those that wait as a group, which has an id, its members in a
fixed order, and a lease. The host finds an answer under its token.

A Redis that was started again, or took over from another one, may lack what was written last, so that a batch which was
taken seems to wait. So all names but those of answers contain the id of its replication, which is another one then:
nothing of what it had is found. A host whose batch is not found goes by the request log (`handing_over`).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import redis
from django.conf import settings

from analytics.request_log.columns import INGESTED
from core.redis.clients import shared_client

HEARD_SECONDS = 10
"""A batch is inserted only if its host was heard of within this time."""

_ANSWER_SECONDS = 2.0
# An inserter that says nothing for this long is gone. It says nothing while it inserts.
_ALIVE_SECONDS = 30.0
# After this time, another inserter takes the group. If the first one still lives, both insert the same under one token.
_LEASE_SECONDS = 10.0
_OFFER_SECONDS = 5.0
# Hosts and inserters of two versions, whose records differ, do not meet.
_FORMAT = hashlib.blake2b(repr(INGESTED).encode(), digest_size=4).hexdigest()
_ROOT = f"svc:inserters:{{{_FORMAT}}}"

_SCRIPT = Path(__file__).with_suffix(".lua").read_text(encoding="ascii")


class Said(StrEnum):
    """`APART` means that the rows of a group were refused; `LOST` that Redis does not know the batch."""

    WAITS = "waits"
    STORED = "stored"
    APART = "apart"
    WITHDRAWN = "withdrawn"
    LOST = "lost"


@dataclass(frozen=True)
class Group:
    token: str
    members: tuple[str, ...]
    rows: tuple[bytes, ...]


def inserter_lives() -> int:
    """Returns Redis' time in milliseconds, or 0 if no inserter lives. This and all functions here raise
    REDIS_ERRORS."""
    return int(_run("lives"))


def offer(token: str, rows: bytes, *, decided_at: int, former: str) -> None:
    """Offers the batch unless Redis' time has gone on too far. The answer about a `former` one is not needed any
    more."""
    _run("offer", token, rows, decided_at + _milliseconds(_OFFER_SECONDS), HEARD_SECONDS, former)


def answer(token: str) -> Said | None:
    found: Any = _redis().get(f"{_ROOT}:answer:{token}")
    return None if found is None else Said(found.decode())


def ask(token: str) -> Said:
    """Says that the host is there. A batch is withdrawn if no inserter lives."""
    return Said(_run("ask", token, HEARD_SECONDS).decode())


def take(inserter: str, new_group: str, *, room: int) -> Group | None:
    """Says that the inserter is there. A group has at least `room` bytes, or all that waits."""
    found = _run("take", inserter, new_group, _milliseconds(_ALIVE_SECONDS), _milliseconds(_LEASE_SECONDS), room)
    if not found:
        return None
    token, *members = found
    return Group(token.decode(), tuple(one.decode() for one in members[::2]), tuple(members[1::2]))


def may_insert(group: Group) -> bool:
    """Says whether the group is whole and all its hosts are there, and renews its lease."""
    return int(_run("may_insert", group.token, _milliseconds(_LEASE_SECONDS))) == len(group.members)


def settle(group: Group, said: Said) -> None:
    _run("settle", group.token, said, *group.members)


def leave(inserter: str) -> None:
    _run("leave", inserter)


def _run(call: str, *arguments: str | bytes | int) -> Any:
    return _redis().eval(_SCRIPT, 1, _ROOT, call, *arguments)


def _redis() -> redis.Redis:
    return shared_client(settings.REDIS_URL, seconds=_ANSWER_SECONDS)


def _milliseconds(seconds: float) -> int:
    return int(seconds * 1000)
