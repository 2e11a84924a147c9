"""One Redis command for many requests of a project costs little more than a command for one request."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import time_ns
from typing import Any, Protocol

import msgspec
import redis

from gateway.limits.allowances import Allowance, Report
from gateway.limits.batch_limits import BatchLimits
from gateway.limits.channel import Command, RedisAwayError
from gateway.limits.claims import Reservation, Settlement
from gateway.limits.keys import Scope, leased_key
from gateway.limits.local import KnownSpend
from gateway.limits.scripts import BATCH, packed

# The maximum holds for admissions and for settlements: Redis answers no other client while it runs a script.
_MAX_REQUESTS = 100
# The largest integer that a double, Lua's type of numbers, holds exactly.
_MAX_EXACT = 2**53
# The number of arguments behind the keys.
_ARGUMENTS = 3
_encode = msgspec.msgpack.Encoder().encode


class PendingAdmission(msgspec.Struct):
    """`answer` is the refusing limit or empty, then requests and tokens of the minute for each counter."""

    reservation: Reservation
    answer: asyncio.Future[Sequence[Any]]


class Ledger(Protocol):
    """Receives a batch's answers.

    `waits` says whether admissions wait for the request log if a budget's spend is unknown; `lease_ms` is the length of
    a lease in milliseconds.
    """

    lease_ms: int

    @property
    def waits(self) -> bool: ...

    def known_of(self, scope: Scope) -> KnownSpend: ...

    def learn(self, scope: Scope, known: KnownSpend, standing: Sequence[Any]) -> None: ...

    def settle(self, reservation: Reservation, tokens: int, cost: int) -> None: ...

    def close_batch(self, project: str, batch: Batch) -> None: ...

    def settlement_failed(self, settled: Settlement, error: RedisAwayError | redis.ResponseError) -> None: ...

    def allowances_to_report(self, project: str) -> list[Allowance]: ...

    def granted(self, project: str, allowances: Sequence[Allowance], answers: Sequence[int]) -> None: ...

    def forget_allowances(self, project: str) -> None: ...


class Batch(Command):
    """Collects admissions and settlements of one project until it is sent. Settlements are not awaited.

    A failure of one request does not affect the others.
    """

    __slots__ = (
        "_admissions",
        "_allowances",
        "_ledger",
        "_limits",
        "_loop",
        "_requested",
        "_settled",
        "_settlements",
    )

    def __init__(self, project: str, ledger: Ledger, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(project, BATCH)
        self._ledger = ledger
        self._loop = loop
        self._limits = BatchLimits(ledger.known_of)
        self._settlements: list[Settlement] = []
        self._admissions: list[PendingAdmission] = []
        self._allowances: list[Allowance] = []
        # The columns of batch.lua's arguments: subjects, reservations, costs or tokens, the settled tokens, and the
        # allowances that the settled requests come from.
        self._settled: tuple[list[int], list[str], list[int | str], list[int], list[int]] = [], [], [], [], []
        self._requested: tuple[list[int], list[str], list[int]] = [], [], []

    def admit(self, reservation: Reservation) -> asyncio.Future[Sequence[Any]]:
        answer: asyncio.Future[Sequence[Any]] = self._loop.create_future()
        self._admissions.append(PendingAdmission(reservation, answer))
        subjects, names, tokens = self._requested
        subjects.append(self._limits.of_admission(reservation.applied))
        names.append(reservation.name)
        tokens.append(min(reservation.claim.tokens, _MAX_EXACT))
        if len(names) == _MAX_REQUESTS:
            self._ledger.close_batch(self.project, self)
        return answer

    def settle(self, reservation: Reservation, tokens: int, cost: int) -> None:
        self._settle(Settlement(reservation, tokens, cost), 0)
        if len(self._settlements) == _MAX_REQUESTS:
            self._ledger.close_batch(self.project, self)

    def _settle(self, settlement: Settlement, source: int) -> None:
        self._settlements.append(settlement)
        reservation, tokens, cost = settlement.reservation, settlement.tokens, settlement.cost
        claim = reservation.claim
        subjects, names, costs, extras, sources = self._settled
        subjects.append(self._limits.of_settlement(reservation.applied))
        names.append(reservation.name or f"|0|{claim.arrived_us}")
        costs.append(cost if cost < _MAX_EXACT else str(cost))
        extra = tokens - claim.tokens if reservation.name else tokens
        extras.append(max(-_MAX_EXACT, min(extra, _MAX_EXACT)))
        sources.append(source)

    def _report(self) -> tuple[list[Report], tuple[list[int], list[str]]]:
        reports: list[Report] = []
        numbers: list[int] = []
        names: list[str] = []
        for allowance in self._ledger.allowances_to_report(self.project):
            report = allowance.report(self._limits, self._loop.time(), time_ns() // 1000)
            if report is not None:
                self._allowances.append(allowance)
                reports.append(report)
            number = len(reports) if report is not None else 0
            taken, ended = allowance.told()
            if report is None:
                allowance.release()
            names += taken
            numbers += [number] * len(taken)
            for settlement in ended:
                self._settle(settlement, number)
        return reports, (numbers, names)

    def complete(self, run_id: str) -> None:
        if self.data:
            return
        self._ledger.close_batch(self.project, self)
        reports, taken = self._report()
        keys, terms = self._limits.packed()
        own = _encode((time_ns() // 1000, self._ledger.waits, *terms, self._settled, self._requested, reports, taken))
        key_count = self._limits.key_count
        if reports:
            keys.append(packed((leased_key(self.project),)))
            key_count += 1
        words = BATCH.begun(1 + key_count + _ARGUMENTS)
        self.data = b"".join((words, packed((key_count,)), *keys, packed((self._ledger.lease_ms, run_id, own))))

    def answered(self, answer: Any) -> None:
        settled, admitted, near, granted, *standings = answer
        self._limits.note_near(near)
        if settled or any(standing and standing[2] for standing in standings):
            self._count_all(settled or [0] * len(self._settlements))
        at = 0
        for pending in self._admissions:
            end = at + 1 + 2 * len(pending.reservation.applied.counters)
            self._answer(pending, admitted[at:end])
            at = end
        # The spend is taken from Redis, whatever was added to it here.
        for (scope, known), standing in zip(self._limits.spends, standings, strict=True):
            if standing:
                self._ledger.learn(scope, known, standing)
        self._ledger.granted(self.project, self._allowances, granted)

    def failed(self, error: RedisAwayError | redis.ResponseError) -> None:
        self._ledger.close_batch(self.project, self)
        requests: list[PendingAdmission | Settlement] = [*self._settlements, *self._admissions]
        for request in requests:
            self._fail(request, error)
        self._ledger.forget_allowances(self.project)

    def _answer(self, pending: PendingAdmission, result: Sequence[Any]) -> None:
        refused_by = result[0]
        if isinstance(refused_by, redis.ResponseError):
            self._fail(pending, refused_by)
        elif not pending.answer.done():
            pending.answer.set_result(result)
        elif not refused_by:
            # The request was cancelled, so its reservation is settled with nothing.
            self._ledger.settle(pending.reservation, 0, 0)

    def _count_all(self, doubted: Sequence[Any]) -> None:
        for settled, found in zip(self._settlements, doubted, strict=True):
            if isinstance(found, redis.ResponseError):
                self._fail(settled, found)
            else:
                self._count(settled, found)

    def _count(self, settled: Settlement, doubted: int) -> None:
        for place, budget in enumerate(settled.reservation.applied.budgets):
            if not doubted >> place & 1:
                self._limits.known_of(budget.scope).spent += settled.cost

    def _fail(self, request: PendingAdmission | Settlement, error: RedisAwayError | redis.ResponseError) -> None:
        if isinstance(request, Settlement):
            self._ledger.settlement_failed(request, error)
        elif not request.answer.done():
            request.answer.set_exception(type(error)(*error.args))  # Each waiting request raises an error of its own.
            request.answer.exception()  # The waiting request may have been cancelled.
