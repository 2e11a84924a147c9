"""One command to Redis for many requests of a project: it costs little more than a command for one request."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import time_ns
from typing import Any, Protocol

import msgspec
import redis
from typing_extensions import override

from gateway.limits.channel import Command, RedisAwayError
from gateway.limits.claims import Reservation
from gateway.limits.keys import Scope
from gateway.limits.local import KnownSpend
from gateway.limits.minute_limits import MinuteLimits
from gateway.limits.scripts import BATCH

# The maximum holds for admissions and for settlements: Redis answers no other client while it runs a script.
_MAX_REQUESTS = 100
# The largest integer that a double, Lua's type of numbers, holds exactly.
_MAX_EXACT = 2**53
_encode = msgspec.msgpack.Encoder().encode


class PendingAdmission(msgspec.Struct):
    """A request that waits for its admission. `answer` is the refusing limit or empty, then requests and tokens of the
    minute."""

    reservation: Reservation
    answer: asyncio.Future[tuple[bytes, int, int | None]]


class Settlement(msgspec.Struct):
    reservation: Reservation
    tokens: int
    cost: int


class Ledger(Protocol):
    """The receiver of a batch's answers. `waits` says whether admissions wait for the request log where a budget's
    spend is unknown."""

    @property
    def waits(self) -> bool: ...

    def known_of(self, scope: Scope) -> KnownSpend: ...

    def learn(self, scope: Scope, known: KnownSpend, standing: Sequence[Any]) -> None: ...

    def settle(self, reservation: Reservation, tokens: int, cost: int) -> None: ...

    def close_batch(self, minute_limits: MinuteLimits, batch: Batch) -> None: ...

    def settlement_failed(self, settled: Settlement, error: RedisAwayError | redis.ResponseError) -> None: ...


class Batch(Command):
    """Collects admissions and settlements of one `MinuteLimits` until it is sent. A failure of one request does not
    affect the others. Settlements are not awaited."""

    __slots__ = (
        "_admissions",
        "_extra",
        "_ledger",
        "_loop",
        "_minute_limits",
        "_month",
        "_requested",
        "_sessions",
        "_settled",
        "_settlements",
    )

    def __init__(self, minute_limits: MinuteLimits, ledger: Ledger, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(BATCH)
        self._minute_limits = minute_limits
        self._ledger = ledger
        self._loop = loop
        self._settlements: list[Settlement] = []
        self._admissions: list[PendingAdmission] = []
        # The columns of batch.lua's arguments: sessions, reservations, and costs or tokens.
        self._settled: tuple[list[int], list[str], list[int | str]] = [], [], []
        self._requested: tuple[list[int], list[str], list[int]] = [], [], []
        self._extra = 0
        self._month = None if minute_limits.month is None else ledger.known_of(minute_limits.month)
        self._sessions: dict[str, tuple[int, Scope, KnownSpend]] = {}

    @property
    def month_is_spent(self) -> bool:
        """True, once the answer is there, if the month's budget is used up; reservations do not count."""
        return self._month is not None and self._month.spent >= self._minute_limits.month_budget

    def admit(self, reservation: Reservation) -> asyncio.Future[tuple[bytes, int, int | None]]:
        """Adds an admission. The future fails with RedisAwayError, or with redis.ResponseError when Redis refuses the
        script."""
        answer: asyncio.Future[tuple[bytes, int, int | None]] = self._loop.create_future()
        self._admissions.append(PendingAdmission(reservation, answer))
        sessions, names, tokens = self._requested
        sessions.append(self._number(reservation.session))
        names.append(reservation.name)
        tokens.append(min(reservation.claim.tokens, _MAX_EXACT))
        if len(names) == _MAX_REQUESTS:
            self.complete()
        return answer

    def settle(self, reservation: Reservation, tokens: int, cost: int) -> None:
        claim = reservation.claim
        if reservation.minute_limits.counts_tokens:
            self._extra += tokens - claim.tokens if reservation.name else tokens
        self._settlements.append(Settlement(reservation, tokens, cost))
        sessions, names, costs = self._settled
        sessions.append(self._number(reservation.session))
        names.append(reservation.name or f"|0|{claim.arrived_us}")
        costs.append(cost if cost < _MAX_EXACT else str(cost))
        if len(names) == _MAX_REQUESTS:
            self.complete()

    @override
    def complete(self) -> None:
        if self.data:
            return
        self._ledger.close_batch(self._minute_limits, self)
        sessions = self._sessions.values()
        known = [0.0 if self._month is None else float(self._month.spent)]
        known += [float(of_session.spent) for _, _, of_session in sessions]
        extra = max(-_MAX_EXACT, min(self._extra, _MAX_EXACT))
        own = _encode((time_ns() // 1000, extra, known, self._settled, self._requested, self._ledger.waits))
        self.data = self._minute_limits.command(own, [scope for _, scope, _ in sessions])

    @override
    def answered(self, answer: Any) -> None:
        settled, admitted, month, *sessions = answer
        if settled or any(standing and standing[2] for standing in (month, *sessions)):
            self._count_all(settled or [0] * len(self._settlements))
        for pending, result in zip(self._admissions, zip(*[iter(admitted)] * 3, strict=True), strict=True):
            self._answer(pending, result)
        # The spend is taken from Redis, whatever was added to it here.
        if month and self._month is not None and self._minute_limits.month is not None:
            self._ledger.learn(self._minute_limits.month, self._month, month)
        for (_, scope, known), standing in zip(self._sessions.values(), sessions, strict=True):
            if standing:
                self._ledger.learn(scope, known, standing)

    @override
    def failed(self, error: RedisAwayError | redis.ResponseError) -> None:
        self._ledger.close_batch(self._minute_limits, self)
        requests: list[PendingAdmission | Settlement] = [*self._settlements, *self._admissions]
        for request in requests:
            self._fail(request, error)

    def _number(self, session: Scope | None) -> int:
        if session is None:
            return 0
        found = self._sessions.get(session.spend)
        if found is None:
            found = self._sessions[session.spend] = len(self._sessions) + 1, session, self._ledger.known_of(session)
        return found[0]

    def _answer(self, pending: PendingAdmission, result: tuple[Any, ...]) -> None:
        refused_by = result[0]
        if isinstance(refused_by, redis.ResponseError):
            self._fail(pending, refused_by)
        elif not pending.answer.done():
            pending.answer.set_result(result)
        elif not refused_by:
            # The request was cancelled, so its reservation is settled with nothing.
            self._ledger.settle(pending.reservation, 0, 0)

    def _count_all(self, doubted: Sequence[Any]) -> None:
        """Counts settlements where a spend is in doubt; certain spends are taken from the standing."""
        for settled, found in zip(self._settlements, doubted, strict=True):
            if isinstance(found, redis.ResponseError):
                self._fail(settled, found)
            else:
                self._count(settled, found)

    def _count(self, settled: Settlement, doubted: int) -> None:
        """Adds a settlement's cost to the spends that Redis counted. The bits of `doubted` name those that it did not
        count."""
        if self._month is not None and not doubted & 1:
            self._month.spent += settled.cost
        session = settled.reservation.session
        if session is not None and not doubted & 2:
            self._sessions[session.spend][2].spent += settled.cost

    def _fail(self, request: PendingAdmission | Settlement, error: RedisAwayError | redis.ResponseError) -> None:
        if isinstance(request, Settlement):
            self._ledger.settlement_failed(request, error)
        elif not request.answer.done():
            request.answer.set_exception(type(error)(*error.args))  # Each waiting request raises an error of its own.
            request.answer.exception()  # The waiting request may have been cancelled.
