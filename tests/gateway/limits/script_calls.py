"""Calls of the limits' scripts in a Redis of the test's own, and the figures that they leave behind."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from gateway.limits import scripts
from gateway.limits.keys import Scope, caller_part, open_key, requests_key, tokens_key
from tests.gateway.limits.conftest import OwnRedis

PROJECT = "018f0000-0000-7000-8000-000000000001"
MONTH, SESSION = Scope(PROJECT, month="2026-11"), Scope(PROJECT, session_id="s/1 %")
OTHER = Scope(PROJECT, session_id="other")
MINUTE = 29_921_506
CALLERS = {"key": caller_part(7), "user": caller_part(user_id="ann")}
PLACES = {name: open_key(PROJECT, part) for name, part in CALLERS.items()}
CALLER_SCOPES = {
    "key_month": Scope(PROJECT, month="2026-11", key_id=7),
    "key_total": Scope(PROJECT, key_id=7),
    "user_month": Scope(PROJECT, month="2026-11", user_id="ann"),
}
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
    """The limits of a request; an empty one does not exist. Those of key and user are `<name>_<limit>` of `callers`."""

    requests: int | str = ""
    tokens: int | str = ""
    month: int | str = ""
    session: int | str = ""
    hard: int = 1
    callers: dict[str, int] = field(default_factory=dict)

    def counters(self) -> list[tuple[list[str], tuple[str, Any, Any]]]:
        found = [(KEYS[:2], ("", self.requests, self.tokens))]
        for name, part in CALLERS.items():
            keys = [requests_key(PROJECT, MINUTE, part), tokens_key(PROJECT, MINUTE, part)]
            found.append((keys, (f"{name}_", self._of(f"{name}_requests"), self._of(f"{name}_tokens"))))
        return [
            (keys, (name, requests if requests != "" else False, tokens if tokens != "" else False))
            for keys, (name, requests, tokens) in found
            if (requests, tokens) != ("", "")
        ]

    def places(self) -> list[tuple[str, tuple[str, int]]]:
        names = [(name, f"{name}_concurrency") for name in CALLERS]
        return [(PLACES[name], (limit, self.callers[limit])) for name, limit in names if limit in self.callers]

    def budgets(self) -> list[tuple[Scope, tuple[str, Any, bool, int]]]:
        found: list[tuple[Scope, tuple[str, Any, bool, int]]] = [
            (MONTH, ("month", self.month, bool(self.hard), 3_456_000)),
            *[(scope, (name, self._of(name), True, 3_456_000)) for name, scope in CALLER_SCOPES.items()],
            (SESSION, ("session", self.session, True, 2_592_000)),
        ]
        return [(scope, terms) for scope, terms in found if terms[1] != ""]

    def _of(self, name: str) -> Any:
        return self.callers.get(name, "")


COUNTED = Terms(month=2**62, session=2**62)


@dataclass
class Ended:
    """The settlement of a request that ended."""

    name: str
    cost: int | str = 0
    tokens: int = 0
    # Whether the request was without a key and a user that have limits.
    plain: bool = False


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
    """Returns the answers to settlements and to admissions, these with requests and tokens of the project's minute, 0
    where nothing counts them, and the standings of month and session."""
    *answers, standings = run_batch(own, terms, *requests, now=now, known=known, run=run, set_at=set_at)
    answers = [[*each, 0, 0][:3] if isinstance(each, list) else each for each in answers]
    return [*answers, standings.get("month", []), standings.get("session", [])]


def run_batch(
    own: OwnRedis,
    terms: Terms,
    *requests: tuple[str, int] | tuple[str, int, bool] | Ended,
    now: int = NOW,
    known: int = 0,
    run: str = "run-1",
    set_at: int = 0,
) -> list[Any]:
    """Returns the answers to settlements and to admissions, and the standings by the name of their limit. An admission
    with True is of a request without a key and a user that have limits."""
    counters, places, budgets = terms.counters(), terms.places(), terms.budgets()
    keys = [key for pair, _ in counters for key in pair] + [key for key, _ in places]
    keys += [key for scope, _ in budgets for key in (scope.spend, scope.reservations)]
    of_tokens = [number for number, (_, (_, _, tokens)) in enumerate(counters, 1) if tokens is not False]
    subject = (numbers(counters), of_tokens, numbers(places), numbers(budgets))
    of_project = [number for number, (_, (name, *_)) in enumerate(counters, 1) if not name]
    plain_budgets = [number for number, (_, (name, *_)) in enumerate(budgets, 1) if name in ("month", "session")]
    plain: tuple[Any, ...] = (of_project, [number for number in of_project if number in of_tokens], [], plain_budgets)
    ended = [each for each in requests if isinstance(each, Ended)]
    settlements = columns([(1 + each.plain, each.name, each.cost, each.tokens) for each in ended], 4)
    arriving = [(*each, False)[:3] for each in requests if not isinstance(each, Ended)]
    admissions = columns([(1 + is_plain, name, tokens) for name, tokens, is_plain in arriving], 3)
    limits = (
        [wire for _, wire in counters],
        [wire for _, wire in places],
        [(*wire, str(set_at), float(known)) for _, wire in budgets],
    )
    words = msgspec.msgpack.encode((now, False, *limits, [subject, plain], settlements, admissions))
    settled, admitted, *standings = own.run(scripts.BATCH, keys, LEASE_MS, run, words)
    answers: list[list[Any]] = []
    for *_, is_plain in arriving:
        step = 1 + 2 * len(of_project if is_plain else counters)
        answers.append(admitted[:step])
        admitted = admitted[step:]
    named = {name: standing for (_, (name, *_)), standing in zip(budgets, standings, strict=True)}
    return [*(settled or [0] * len(ended)), *answers, named]


def numbers(limits: list[Any]) -> list[int]:
    return list(range(1, len(limits) + 1))


def columns(rows: list[tuple[Any, ...]], width: int) -> list[list[Any]]:
    return [[row[place] for row in rows] for place in range(width)]


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
