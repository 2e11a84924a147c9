"""What is asked of Redis at one time about the limits of one project: one command for many requests, whose answer costs
little more than that of one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import time_ns
from typing import Any, Protocol

import msgspec
import redis
from typing_extensions import override

from gateway.limits.channel import Question, RedisAwayError
from gateway.limits.claims import Held
from gateway.limits.keys import Scope
from gateway.limits.local import Known
from gateway.limits.scripts import BATCH
from gateway.limits.terms import Terms

# Of admissions, and as many settlements. Nobody else is answered while Redis runs a script.
_MOST_REQUESTS = 100
# What a double holds, as which Lua knows numbers.
_EXACT = 2**53
_encode = msgspec.msgpack.Encoder().encode


class Asked(msgspec.Struct):
    """`answer`: the limit that refuses or nothing, then requests and tokens of the minute."""

    held: Held
    answer: asyncio.Future[tuple[bytes, int, int | None]]


class Settled(msgspec.Struct):
    held: Held
    tokens: int
    cost: int


class Ledger(Protocol):
    """Whom answers are told. `waits`: for the request log, where a budget's spend is not known."""

    @property
    def waits(self) -> bool: ...

    def known_of(self, scope: Scope) -> Known: ...

    def learn(self, scope: Scope, known: Known, standing: Sequence[Any]) -> None: ...

    def settle(self, held: Held, tokens: int, cost: int) -> None: ...

    def close_batch(self, terms: Terms, batch: Batch) -> None: ...

    def settlement_failed(self, settled: Settled, error: RedisAwayError | redis.ResponseError) -> None: ...


class Batch(Question):
    """Takes admissions and settlements until it leaves; what becomes of one does not touch the others. All have the
    same terms. Nobody waits for a settlement."""

    __slots__ = (
        "_admissions",
        "_asked",
        "_extra",
        "_ledger",
        "_loop",
        "_month",
        "_sessions",
        "_settled",
        "_settlements",
        "_terms",
    )

    def __init__(self, terms: Terms, ledger: Ledger, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(BATCH)
        self._terms = terms
        self._ledger = ledger
        self._loop = loop
        self._settlements: list[Settled] = []
        self._admissions: list[Asked] = []
        # As batch.lua takes them: sessions, reservations, and costs or tokens.
        self._settled: tuple[list[int], list[str], list[int | str]] = [], [], []
        self._asked: tuple[list[int], list[str], list[int]] = [], [], []
        self._extra = 0
        self._month = None if terms.month is None else ledger.known_of(terms.month)
        self._sessions: dict[str, tuple[int, Scope, Known]] = {}

    @property
    def month_is_spent(self) -> bool:
        """Once it was answered: the month's budget is used up, without what is reserved."""
        return self._month is not None and self._month.spent >= self._terms.month_budget

    def admit(self, held: Held) -> asyncio.Future[tuple[bytes, int, int | None]]:
        """Fails with RedisAwayError, or redis.ResponseError when Redis cannot do it."""
        answer: asyncio.Future[tuple[bytes, int, int | None]] = self._loop.create_future()
        self._admissions.append(Asked(held, answer))
        sessions, names, tokens = self._asked
        sessions.append(self._number(held.session))
        names.append(held.name)
        tokens.append(min(held.claim.tokens, _EXACT))
        if len(names) == _MOST_REQUESTS:
            self.complete()
        return answer

    def settle(self, held: Held, tokens: int, cost: int) -> None:
        claim = held.claim
        if held.terms.counts_tokens:
            self._extra += tokens - claim.tokens if held.name else tokens
        self._settlements.append(Settled(held, tokens, cost))
        sessions, names, costs = self._settled
        sessions.append(self._number(held.session))
        names.append(held.name or f"|0|{claim.arrived_us}")
        costs.append(cost if cost < _EXACT else str(cost))
        if len(names) == _MOST_REQUESTS:
            self.complete()

    @override
    def complete(self) -> None:
        if self.command:
            return
        self._ledger.close_batch(self._terms, self)
        sessions = self._sessions.values()
        known = [0.0 if self._month is None else float(self._month.spent)]
        known += [float(of_session.spent) for _, _, of_session in sessions]
        extra = max(-_EXACT, min(self._extra, _EXACT))
        own = _encode((time_ns() // 1000, extra, known, self._settled, self._asked, self._ledger.waits))
        self.command = self._terms.command(own, [scope for _, scope, _ in sessions])

    @override
    def answered(self, answer: Any) -> None:
        settled, admitted, month, *sessions = answer
        if settled or any(standing and standing[2] for standing in (month, *sessions)):
            self._count_all(settled or [0] * len(self._settlements))
        for asked, found in zip(self._admissions, zip(*[iter(admitted)] * 3, strict=True), strict=True):
            self._tell(asked, found)
        # As Redis has it, whatever was added to it here.
        if month and self._month is not None and self._terms.month is not None:
            self._ledger.learn(self._terms.month, self._month, month)
        for (_, scope, known), standing in zip(self._sessions.values(), sessions, strict=True):
            if standing:
                self._ledger.learn(scope, known, standing)

    @override
    def failed(self, error: RedisAwayError | redis.ResponseError) -> None:
        self._ledger.close_batch(self._terms, self)
        requests: list[Asked | Settled] = [*self._settlements, *self._admissions]
        for request in requests:
            self._fail(request, error)

    def _number(self, session: Scope | None) -> int:
        if session is None:
            return 0
        found = self._sessions.get(session.spend)
        if found is None:
            found = self._sessions[session.spend] = len(self._sessions) + 1, session, self._ledger.known_of(session)
        return found[0]

    def _tell(self, asked: Asked, found: tuple[Any, ...]) -> None:
        refused_by = found[0]
        if isinstance(refused_by, redis.ResponseError):
            self._fail(asked, refused_by)
        elif not asked.answer.done():
            asked.answer.set_result(found)
        elif not refused_by:
            # Nobody is there any more to use what it reserved.
            self._ledger.settle(asked.held, 0, 0)

    def _count_all(self, doubted: Sequence[Any]) -> None:
        """Only where something is in doubt: what is certain is learned from the standing."""
        for settled, found in zip(self._settlements, doubted, strict=True):
            if isinstance(found, redis.ResponseError):
                self._fail(settled, found)
            else:
                self._count(settled, found)

    def _count(self, settled: Settled, doubted: int) -> None:
        """`doubted`: where Redis did not count it."""
        if self._month is not None and not doubted & 1:
            self._month.spent += settled.cost
        session = settled.held.session
        if session is not None and not doubted & 2:
            self._sessions[session.spend][2].spent += settled.cost

    def _fail(self, request: Asked | Settled, error: RedisAwayError | redis.ResponseError) -> None:
        if isinstance(request, Settled):
            self._ledger.settlement_failed(request, error)
        elif not request.answer.done():
            request.answer.set_exception(type(error)(*error.args))  # raised by each on its own
            request.answer.exception()  # nobody may be waiting any more
