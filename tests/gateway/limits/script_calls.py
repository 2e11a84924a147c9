"""Calls of the limits' scripts in a Redis of the test's own, and the figures that they leave behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from gateway.limits import scripts
from gateway.limits.keys import Scope, requests_key, tokens_key
from tests.gateway.limits.conftest import OwnRedis

PROJECT = "018f0000-0000-7000-8000-000000000001"
MONTH, SESSION = Scope(PROJECT, month="2026-11"), Scope(PROJECT, session_id="s/1 %")
OTHER = Scope(PROJECT, session_id="other")
MINUTE = 29_921_506
KEYS = [
    requests_key(PROJECT, MINUTE),
    tokens_key(PROJECT, MINUTE),
    MONTH.spend,
    MONTH.reservations,
    SESSION.spend,
    SESSION.reservations,
]
LEASE_MS = 60_000
NOW = 1_795_290_000_000_000


@dataclass
class Terms:
    requests: int | str = ""
    tokens: int | str = ""
    month: int | str = ""
    session: int | str = ""
    hard: int = 1


COUNTED = Terms(month=2**62, session=2**62)


@dataclass
class Ended:
    """The settlement of a request that ended."""

    name: str
    cost: int | str = 0
    tokens: int = 0


def admit(
    own: OwnRedis, terms: Terms, name: str, *, tokens: int = 1, cost: int = 0, at: int = NOW, **batched: Any
) -> Any:
    answer, *standings = batch(own, terms, (f"{name}|{cost}|{at}", tokens), **{"now": at, **batched})
    return [*answer, *standings]


def settle(
    own: OwnRedis, name: str, *, terms: Terms = COUNTED, tokens: int = 0, cost: int | str = 0, now: int = NOW
) -> Any:
    return batch(own, terms, Ended(name, cost, tokens), now=now)


def batch(
    own: OwnRedis,
    terms: Terms,
    *requests: tuple[str, int] | Ended,
    now: int,
    known: int = 0,
    run: str = "run-1",
    set_at: int = 0,
) -> list[Any]:
    """Returns the answers to settlements and to admissions, and the standings of month and session."""
    limits = (terms.requests, terms.tokens, terms.month, terms.hard, terms.session, LEASE_MS, run, set_at)
    keys, in_session, spends = (KEYS, 1, [known, known]) if terms.session != "" else (KEYS[:4], 0, [known])
    ended = [each for each in requests if isinstance(each, Ended)]
    settlements = columns([(in_session, each.name, each.cost) for each in ended])
    admissions = columns([(in_session, *each) for each in requests if not isinstance(each, Ended)])
    words = (now, sum(each.tokens for each in ended), spends, settlements, admissions)
    settled, admitted, month, *session = own.run(scripts.BATCH, keys, *limits, msgspec.msgpack.encode(words))
    answers = [admitted[at : at + 3] for at in range(0, len(admitted), 3)]
    return [*(settled or [0] * len(ended)), *answers, month, *(session or [[]])]


def columns(rows: list[tuple[Any, ...]]) -> list[list[Any]]:
    return [[row[place] for row in rows] for place in range(3)]


def raise_to(own: OwnRedis, scope: Scope, since: int, spent: int, *, final: int = 0) -> Any:
    return own.run(scripts.RAISE, [scope.spend, scope.reservations], since, spent, final, since)


def spent(own: OwnRedis, scope: Scope) -> tuple[int, int]:
    """Returns the spend and the reservations."""
    base, after, reserved = own.client.hmget(scope.spend, "base", "after", "reserved")
    return int(base or 0) + int(after or 0), int(reserved or 0)


def begin(own: OwnRedis) -> int:
    """Makes a month in doubt since NOW, with no reservation."""
    admit(own, Terms(month=1000), "first", cost=4, at=NOW)
    settle(own, f"first|4|{NOW}", cost=3)
    return NOW
