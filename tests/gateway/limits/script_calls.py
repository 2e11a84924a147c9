"""Calls of the limits' scripts in a Redis of the test's own, and the figures that they leave behind."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import msgspec

from gateway.limits import scripts
from gateway.limits.keys import Scope, caller_part, open_key, requests_key, tokens_key
from tests.gateway.limits.conftest import OwnRedis

PROJECT = "018f0000-0000-7000-8000-000000000001"
MONTH, SESSION = Scope(PROJECT, month="2026-11"), Scope(PROJECT, session_id="s/1 %")
OTHER = Scope(PROJECT, session_id="other")
MINUTE = 29_921_506
CALLERS = {"team": caller_part(team_id=5), "key": caller_part(7), "user": caller_part(user_id="ann")}
EVERY_CALLER = frozenset(CALLERS)
# A request may be of the limited team, of the limited key, of the limited user, of several and of none.
CALLER_SETS = [frozenset(names) for size in range(len(CALLERS) + 1) for names in combinations(CALLERS, size)]
PLACES = {name: open_key(PROJECT, part) for name, part in CALLERS.items()}
CALLER_SCOPES = {
    "team_month": Scope(PROJECT, month="2026-11", team_id=5),
    "team_total": Scope(PROJECT, team_id=5),
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
    """The limits of a request; an empty one does not exist. Those of team, key and user are `<name>_<limit>` of
    `callers`."""

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
    # Whether the request was of the limited team, of the limited key, and of the limited user.
    callers: frozenset[str] = EVERY_CALLER


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
    *requests: tuple[str, int] | tuple[str, int, frozenset[str]] | Ended,
    now: int = NOW,
    known: int = 0,
    run: str = "run-1",
    set_at: int = 0,
) -> list[Any]:
    """Returns the answers to settlements and to admissions, and the standings by the name of their limit. An admission
    names its callers, every one unless it says otherwise."""
    counters, places, budgets = terms.counters(), terms.places(), terms.budgets()
    keys = [key for pair, _ in counters for key in pair] + [key for key, _ in places]
    keys += [key for scope, _ in budgets for key in (scope.spend, scope.reservations)]
    subjects = [_subject(terms, callers) for callers in CALLER_SETS]
    ended = [each for each in requests if isinstance(each, Ended)]
    settlements = columns(
        [(1 + CALLER_SETS.index(each.callers), each.name, each.cost, each.tokens, 0) for each in ended], 5
    )
    arriving = [(*each, EVERY_CALLER)[:3] for each in requests if not isinstance(each, Ended)]
    admissions = columns([(1 + CALLER_SETS.index(callers), name, tokens) for name, tokens, callers in arriving], 3)
    limits = (
        [wire for _, wire in counters],
        [wire for _, wire in places],
        [(*wire, str(set_at), float(known)) for _, wire in budgets],
    )
    words = msgspec.msgpack.encode((now, False, *limits, subjects, settlements, admissions, [], ([], [])))
    settled, admitted, _, _, *standings = own.run(scripts.BATCH, keys, LEASE_MS, run, words)
    answers: list[list[Any]] = []
    for *_, callers in arriving:
        step = 1 + 2 * len(subjects[CALLER_SETS.index(callers)][0])
        answers.append(admitted[:step])
        admitted = admitted[step:]
    named = {name: standing for (_, (name, *_)), standing in zip(budgets, standings, strict=True)}
    return [*(settled or [0] * len(ended)), *answers, named]


def _subject(terms: Terms, callers: frozenset[str]) -> tuple[list[int], ...]:
    """Returns the numbers of the limits of requests of these callers: counters, those of tokens, places and budgets."""

    def of(names: Iterable[str]) -> list[int]:
        # The project's own limits name no caller.
        return [
            number for number, name in enumerate(names, 1) if (caller_of(name) or "project") in {"project", *callers}
        ]

    counters = terms.counters()
    counted = of(name for _, (name, *_) in counters)
    of_tokens = [number for number in counted if counters[number - 1][1][2] is not False]
    places = of(name for _, (name, _) in terms.places())
    return counted, of_tokens, places, of(name for _, (name, *_) in terms.budgets())


def caller_of(limit: str) -> str:
    """Returns `team`, `key` or `user` for the name of a limit of theirs, and nothing for one of the project."""
    caller, _, _ = limit.partition("_")
    return caller if caller in CALLERS else ""


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
