"""Admits and settles requests, in Redis while it answers and in this worker's memory while it does not."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from time import time_ns
from typing import Any, NamedTuple

import redis

from core.processes.background_tasks import keep_running, watch
from gateway.limits import scripts
from gateway.limits.allowances import Allowance, Allowances
from gateway.limits.batch import Batch
from gateway.limits.channel import RedisAwayError
from gateway.limits.claims import UNCOUNTED, Admission, Claim, Reservation, Settlement, answer_to
from gateway.limits.connecting import connect
from gateway.limits.keys import MINUTE_US, Scope
from gateway.limits.local import KnownSpend, KnownSpends, LocalLimits
from gateway.limits.minute_limits import MinuteLimits
from gateway.limits.open_batches import OpenBatches
from gateway.project_settings.limits import ProjectLimits

logger = logging.getLogger("gateway.limits")

_ASK_ALONE_MS = 1000
_MAX_PROJECTS = 4096
_UNKNOWN = b"unknown"
# The interval of the checks in Redis whether the request log has answered, which another worker may have queried.
_POLL_SECONDS = 0.01
# After a log that was away or too slow, admissions do not wait for it for this long, or until it answers.
_PAUSE_SECONDS = 10.0
# The prefix makes names longer than 64 bytes: up to 128 shorter ones share one string in Redis
# (zset-max-ziplist-value), half of which is read for each insertion or removal.
_NAME_PREFIX = "reservation:"

OnDoubt = Callable[[Scope, int], None]


class Doubt(NamedTuple):
    """The doubt about a scope's spend, for requests that arrived before `since_us`, in microseconds.

    `since_us` is None if the log need not be queried: another worker queries it, or nothing `is_unsure`. `last_us` is
    the latest arrival among the requests that are counted after it.
    """

    since_us: int | None
    last_us: int
    is_unsure: bool


class Limiter:
    """The limiter of one worker.

    `on_doubt` is called with each scope whose spend has to be looked up in the request log, and the time up to which,
    in microseconds. After `timeout` seconds Redis counts as down; an admission waits at most `log_timeout` seconds for
    the log to supply an unknown spend.
    """

    def __init__(
        self,
        url: str,
        *,
        workers: int,
        lease_seconds: float,
        timeout: float,
        on_doubt: OnDoubt,
        log_timeout: float = 0.0,
        ahead_seconds: float = 0.0,
    ) -> None:
        self._known = KnownSpends()
        self._local = LocalLimits(self._known, workers)
        self.lease_ms = int(lease_seconds * 1000)
        self._on_doubt = on_doubt
        self._reservations: dict[str, Reservation] = {}
        self._refusing = False
        self._minute_limits: dict[str, MinuteLimits] = {}
        self._loop = asyncio.get_running_loop()
        self._log_timeout = log_timeout
        self._paused_until = self._loop.time() if log_timeout else float("inf")
        self._log_waits: dict[Scope, asyncio.Task[None]] = {}
        # The requests of these scopes were settled while Redis was away, and are in the request log only.
        self._uncounted: dict[Scope, None] = {}
        self._redis = connect(url, timeout=timeout, on_return=self._returned)
        self._batches = OpenBatches(self._redis, self._new_batch)
        self._allowances = Allowances(ahead_seconds)
        self._renewal = keep_running("gateway.limits.renew", self._renew)

    @property
    def is_connected(self) -> bool:
        return self._redis.is_open

    async def tried(self) -> None:
        """Returns when Redis was reached or found to be down.

        Earlier admissions use this worker's own counts, and a new worker has none.
        """
        await self._redis.tried()

    @property
    def waits(self) -> bool:
        return self._loop.time() >= self._paused_until

    def share_among(self, workers: int, number: int) -> None:
        self._local.share_among(workers, number)

    async def close(self) -> None:
        self._allowances.retire_all()
        # A command that is under way already leaves the rest to another.
        for _ in range(2):
            for project in self._allowances.projects():
                self._leave(project)
            self._batches.send_all()
            await self._redis.answered()
        tasks = [self._renewal, *self._log_waits.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._redis.close()

    def admit_at_once(self, limits: ProjectLimits, claim: Claim) -> Admission | None:
        allowance = self.find_leased(limits, claim)
        return None if allowance is None else self.take(allowance, claim)

    def find_leased(self, limits: ProjectLimits, claim: Claim) -> Allowance | None:
        return self._allowances.find(self._minute_limits_of(limits, claim).applied(claim.session_id, claim.caller))

    def take(self, allowance: Allowance, claim: Claim) -> Admission | None:
        admission = allowance.take(claim, _name_of(claim))
        if admission is not None and admission.reservation is not None:
            self._reservations[admission.reservation.name] = admission.reservation
        return admission

    def take_back(self, reservation: Reservation) -> None:
        self._reservations.pop(reservation.name, None)
        allowance = self._allowances.find(reservation.applied)
        if allowance is not None:
            allowance.take_back(reservation)

    async def admit(self, limits: ProjectLimits, claim: Claim) -> Admission:
        return self.admit_at_once(limits, claim) or await self.ask(limits, claim)

    async def ask(self, limits: ProjectLimits, claim: Claim) -> Admission:
        admission = await self._ask(limits, claim)
        if admission.refused_by:
            applied = self._minute_limits_of(limits, claim).applied(claim.session_id, claim.caller)
            # What this worker has leased ahead must not refuse its own requests.
            if self._allowances.give_back(claim.project, applied.key_of(admission.refused_by)):
                return await self._ask(limits, claim)
        return admission

    async def _ask(self, limits: ProjectLimits, claim: Claim) -> Admission:
        applied = self._minute_limits_of(limits, claim).applied(claim.session_id, claim.caller)
        self._allowances.note(applied, claim)
        reservation = Reservation(claim, _name_of(claim), applied)
        try:
            batch = self._batches.leaving(claim.project)
        except RedisAwayError:
            return self._admit_alone(limits, reservation)
        answer = batch.admit(reservation)
        try:
            refused_by, *counts = await answer
        except RedisAwayError:
            return self._admit_alone(limits, reservation)
        except redis.RedisError as error:
            self._note_refusal(error)
            return self._admit_alone(limits, reservation)
        except asyncio.CancelledError:
            if answer.done() and not answer.cancelled() and answer.exception() is None and not answer.result()[0]:
                self.settle(reservation, 0, 0)
            raise
        if self._refusing:
            self._note_accepted()
        if refused_by:
            if refused_by == _UNKNOWN:
                await self._wait_for_scopes(reservation.scopes())
                return await self._ask(limits, claim)
            return answer_to(reservation, refused_by.decode(), counts)
        self._reservations[reservation.name] = reservation
        month = applied.month
        spent = month is not None and self._known.of(month.scope).spent >= month.units
        return answer_to(reservation, "", counts, month_is_spent=spent)

    def _admit_alone(self, limits: ProjectLimits, reservation: Reservation) -> Admission:
        if limits.refuses_without_redis and reservation.applied.may_refuse:
            return Admission(UNCOUNTED, None, None, None)
        return self._local.admit(reservation)

    def log_is_away(self) -> None:
        if self._log_timeout:
            self._paused_until = self._loop.time() + _PAUSE_SECONDS

    def log_answers(self) -> None:
        if self._log_timeout:
            self._paused_until = self._loop.time()

    async def _wait_for_scopes(self, scopes: list[Scope]) -> None:
        for scope in scopes:
            if scope not in self._log_waits:
                task = self._log_waits[scope] = self._loop.create_task(
                    self._wait_for_log(scope), name="gateway.limits.look"
                )
                task.add_done_callback(partial(self._log_wait_ended, scope))
                watch(task)
        # A client that hangs up must not cancel the lookup for the other waiting requests.
        await asyncio.gather(*(asyncio.shield(self._log_waits[scope]) for scope in scopes))

    async def _wait_for_log(self, scope: Scope) -> None:
        ends = self._loop.time() + self._log_timeout
        while self.waits and self._loop.time() < ends:
            try:
                if await self._redis.run(scope.project, scripts.LOOKED, [scope.spend], []):
                    return
            except (RedisAwayError, redis.RedisError):
                return
            await asyncio.sleep(_POLL_SECONDS)
        self.log_is_away()

    def _log_wait_ended(self, scope: Scope, task: asyncio.Task[None]) -> None:
        del self._log_waits[scope]

    def settle(self, reservation: Reservation, tokens: int, cost: int) -> None:
        """Replaces a reservation by the actual tokens and units of cost, without waiting.

        If limits have plenty of room, Redis may be told a little later (`open_batches`).
        """
        self._reservations.pop(reservation.name, None)
        if not reservation.name:
            self._local.settle(reservation, tokens, cost)
        if not reservation.applied.is_settled:
            return
        project = reservation.claim.project
        if reservation.allowance is not None:
            at_once = not _may_wait(reservation, tokens, cost)
            reservation.allowance.end(Settlement(reservation, tokens, cost), at_once=at_once)
            if at_once:
                self._leave(project)
            return
        try:
            if _may_wait(reservation, tokens, cost):
                batch = self._batches.waiting(project)
            else:
                batch = self._batches.leaving(project)
        except RedisAwayError:
            self._settle_alone(reservation, tokens, cost)
        else:
            batch.settle(reservation, tokens, cost)

    def charge(self, limits: ProjectLimits, claim: Claim, cost: int) -> None:
        """Adds units of cost to the claim's budgets, without waiting.

        Nothing is refused: the cost has already arisen, without a reservation.
        """
        applied = self._minute_limits_of(limits, claim).applied(claim.session_id, claim.caller)
        self.settle(Reservation(claim, "", applied.of_budgets()), 0, cost)

    async def since(self, scope: Scope) -> Doubt:
        arguments = [time_ns() // 1000, _ASK_ALONE_MS]
        keys = [scope.spend, scope.reservations]
        since, standing, last = await self._redis.run(scope.project, scripts.SINCE, keys, arguments)
        self.learn(scope, self._known.of(scope), standing, notify=False)
        _, _, unsure, _ = standing
        return Doubt(int(since) if since else None, int(last), bool(unsure))

    async def raise_to(self, scope: Scope, since_us: int, spent: int, *, final: bool) -> bool:
        """Raises the spend in Redis to the request log's, for requests before `since_us`.

        Returns False if it is too early or too late for that. Raises RedisAwayError.
        """
        arguments = [since_us, spent, int(final), time_ns() // 1000]
        keys = [scope.spend, scope.reservations]
        done, standing = await self._redis.run(scope.project, scripts.RAISE, keys, arguments)
        self.learn(scope, self._known.of(scope), standing, notify=False)
        return bool(done)

    def known_of(self, scope: Scope) -> KnownSpend:
        return self._known.of(scope)

    def learn(self, scope: Scope, known: KnownSpend, standing: Sequence[Any], *, notify: bool = True) -> None:
        base, after, unsure, since = standing
        spent = int(base) + int(after)
        if not unsure:
            known.spent = spent
            known.doubted = b""
            return
        # A Redis that lost its data knows less than this worker does.
        known.spent = max(spent, known.spent)
        if notify and known.doubted != since:
            known.doubted = since
            self._on_doubt(scope, int(since))

    def allowances_to_report(self, project: str) -> list[Allowance]:
        return self._allowances.to_report(project)

    def granted(self, project: str, allowances: Sequence[Allowance], answers: Sequence[int]) -> None:
        """`answers` holds, for each allowance, the requests granted and then the counts of its counters."""
        at, is_urgent = 0, False
        for allowance in allowances:
            end = at + 1 + 2 * len(allowance.applied.counters)
            if answers[at] < 0:
                self._settle_all(allowance.forget())
            else:
                allowance.granted(answers[at], answers[at + 1 : end], self._known)
                self._settle_all(allowance.release())
            at = end
            if allowance.applied.is_near and allowance.has_left:
                allowance.give_back()
                is_urgent = True
            is_urgent = is_urgent or allowance.is_urgent
        if is_urgent:
            self._leave(project)
        elif patience := self._allowances.patience(project):
            with suppress(RedisAwayError):
                self._batches.waiting(project, patience)

    def forget_allowances(self, project: str) -> None:
        for allowance in self._allowances.remove(project):
            self._settle_all(allowance.forget())

    def _settle_all(self, settlements: Sequence[Settlement]) -> None:
        for settled in settlements:
            self.settle(settled.reservation, settled.tokens, settled.cost)

    def _leave(self, project: str) -> None:
        with suppress(RedisAwayError):
            self._batches.leaving(project)

    def close_batch(self, project: str, batch: Batch) -> None:
        self._batches.close(project, batch)

    def settlement_failed(self, settled: Settlement, error: RedisAwayError | redis.ResponseError) -> None:
        if isinstance(error, redis.ResponseError):
            self._note_refusal(error)
        self._settle_alone(settled.reservation, settled.tokens, settled.cost)

    def _note_refusal(self, error: redis.RedisError) -> None:
        """Logs that Redis refuses writes: it is out of memory or read-only.

        A replica is left, because the address may now lead to the new primary.
        """
        if "READONLY" in str(error):
            self._redis.leave("it is a replica")
            return
        if not self._refusing:
            logger.error("redis.refuses error=%s", error)
        self._refusing = True

    def _note_accepted(self) -> None:
        self._refusing = False
        logger.warning("redis.accepts")
        self._returned()

    def _settle_alone(self, reservation: Reservation, tokens: int, cost: int) -> None:
        if reservation.name:
            self._local.settle(reservation, tokens, cost)
        for scope in reservation.scopes():
            self._uncounted[scope] = None

    def _minute_limits_of(self, limits: ProjectLimits, claim: Claim) -> MinuteLimits:
        found = self._minute_limits.get(claim.project)
        minute = claim.arrived_us // MINUTE_US
        if found is None or found.minute != minute or found.limits is not limits:
            if len(self._minute_limits) >= _MAX_PROJECTS:
                self._minute_limits.clear()
            self._allowances.retire(claim.project)
            found = self._minute_limits[claim.project] = MinuteLimits(limits, claim.project, minute)
        return found

    def _new_batch(self, project: str) -> Batch:
        return Batch(project, self, self._loop)

    def _returned(self) -> None:
        if self._redis.is_open:
            self._local.forget()
        uncounted, self._uncounted = self._uncounted, {}
        now_us = time_ns() // 1000
        for scope in uncounted:
            try:
                answer = self._redis.run(scope.project, scripts.DOUBT, [scope.spend], [now_us])
            except RedisAwayError:
                self._uncounted[scope] = None  # Another node of the cluster, which is away still.
            else:
                answer.add_done_callback(partial(self._doubted, scope))

    def _doubted(self, scope: Scope, answer: asyncio.Future[Any]) -> None:
        if answer.cancelled() or answer.exception() is not None:
            self._uncounted[scope] = None
        else:
            self.learn(scope, self._known.of(scope), answer.result())

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self.lease_ms / 3000)
            by_key: dict[tuple[str, str], list[str]] = {}
            for reservation in self._reservations.values():
                applied = reservation.applied
                keys = [budget.scope.reservations for budget in applied.budgets]
                for key in (*keys, *(places.key for places in applied.places)):
                    by_key.setdefault((reservation.claim.project, key), []).append(reservation.name)
            for (project, key), names in by_key.items():
                if self._redis.reaches(project):
                    answer = self._redis.run(project, scripts.RENEW, [key], [self.lease_ms, *names])
                    answer.add_done_callback(_note_renewal)


def _name_of(claim: Claim) -> str:
    return f"{_NAME_PREFIX}{claim.request_id}|{claim.cost}|{claim.arrived_us}"


def _may_wait(reservation: Reservation, tokens: int, cost: int) -> bool:
    """Returns whether a settlement may wait: at admission the limits had room for twice all reservations.

    So this request had its place, however the others were settled (scripts/near.lua).
    """
    claim = reservation.claim
    is_moderate = tokens <= 2 * claim.tokens and cost <= 2 * claim.cost
    return is_moderate and not reservation.applied.is_near and bool(reservation.name)


def _note_renewal(answer: asyncio.Future[Any]) -> None:
    error = None if answer.cancelled() else answer.exception()
    if error is not None and not isinstance(error, RedisAwayError):
        logger.error("renewal.failed error=%s", error)
