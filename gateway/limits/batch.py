"""What is asked of Redis in one turn of the loop about the limits of one project: one command for many requests, whose
answer costs little more than that of one."""

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
from gateway.limits.scripts import BATCH, Argument
from gateway.limits.terms import Terms

# Nobody else is answered while Redis runs a script.
_MOST_REQUESTS = 200


class Asked(msgspec.Struct):
    """`answer`: the limit that refuses or nothing, then requests and tokens of the minute."""

    held: Held
    answer: asyncio.Future[Sequence[Any]]


class Settled(msgspec.Struct):
    held: Held
    tokens: int
    cost: int


class Ledger(Protocol):
    """Whom answers are told."""

    def known_of(self, scope: Scope) -> Known: ...

    def learn(self, scope: Scope, known: Known, standing: Sequence[Any]) -> None: ...

    def settle(self, held: Held, tokens: int, cost: int) -> None: ...

    def settlement_failed(self, settled: Settled, error: RedisAwayError | redis.ResponseError) -> None: ...


class Batch(Question):
    """Takes admissions and settlements until it leaves; what becomes of one does not touch the others. All have the
    same terms. Nobody waits for a settlement."""

    __slots__ = ("_ledger", "_loop", "_month", "_requests", "_sessions", "_terms", "_words")

    def __init__(self, terms: Terms, ledger: Ledger, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(BATCH)
        self._terms = terms
        self._ledger = ledger
        self._loop = loop
        self._requests: list[Asked | Settled] = []
        self._words: list[Argument] = []
        self._month = None if terms.month is None else ledger.known_of(terms.month)
        self._sessions: dict[str, tuple[int, Scope, Known]] = {}

    @property
    def month_is_spent(self) -> bool:
        """Once it was answered: the month's budget is used up, without what is reserved."""
        return self._month is not None and self._month.spent >= self._terms.month_budget

    def admit(self, held: Held) -> asyncio.Future[Sequence[Any]]:
        """Fails with RedisAwayError, or redis.ResponseError when Redis cannot do it."""
        answer: asyncio.Future[Sequence[Any]] = self._loop.create_future()
        self._add(Asked(held, answer), held.name, held.claim.tokens, "")
        return answer

    def settle(self, held: Held, tokens: int, cost: int) -> None:
        claim, extra = held.claim, 0
        if held.terms.counts_tokens:
            extra = tokens - claim.tokens if held.name else tokens
        self._add(Settled(held, tokens, cost), held.name or f"|0|{claim.arrived_us}", extra, cost)

    @override
    def complete(self) -> None:
        if self.command:
            return
        self._close()
        now_us, month = time_ns() // 1000, 0 if self._month is None else self._month.spent
        sessions = self._sessions.values()
        own = (now_us, month, *[known.spent for _, _, known in sessions], *self._words)
        self.command = self._terms.command(own, [scope for _, scope, _ in sessions])

    @override
    def answered(self, answer: Any) -> None:
        answers, month, *sessions = answer
        for request, found in zip(self._requests, answers, strict=True):
            if isinstance(found, redis.ResponseError):
                self._fail(request, found)
            elif isinstance(request, Settled):
                self._count(request, found)
            elif not request.answer.done():
                request.answer.set_result(found)
            elif not found[0]:
                # Nobody is there any more to use what it reserved.
                self._ledger.settle(request.held, 0, 0)
        # As Redis has it, whatever was added to it here.
        if month and self._month is not None and self._terms.month is not None:
            self._ledger.learn(self._terms.month, self._month, month)
        for (_, scope, known), standing in zip(self._sessions.values(), sessions, strict=True):
            if standing:
                self._ledger.learn(scope, known, standing)

    @override
    def failed(self, error: RedisAwayError | redis.ResponseError) -> None:
        self._close()
        for request in self._requests:
            self._fail(request, error)

    def _close(self) -> None:
        if self._terms.batch is self:
            self._terms.batch = None

    def _add(self, request: Asked | Settled, name: str, tokens: int, cost: Argument) -> None:
        self._requests.append(request)
        session = request.held.session
        self._words += (0 if session is None else self._number(session), name, tokens, cost)
        if len(self._requests) == _MOST_REQUESTS:
            self.complete()

    def _number(self, session: Scope) -> int:
        found = self._sessions.get(session.spend)
        if found is None:
            found = self._sessions[session.spend] = len(self._sessions) + 1, session, self._ledger.known_of(session)
        return found[0]

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
