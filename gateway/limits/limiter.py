"""Admission and settlement, over Redis where it answers and over this worker's own figures where it does not."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from time import time_ns
from typing import Any, NamedTuple

import redis

from gateway.limits import scripts
from gateway.limits.batch import Batch, Settled
from gateway.limits.channel import RedisAwayError
from gateway.limits.claims import Admission, Claim, Held
from gateway.limits.connection import ScriptConnection
from gateway.limits.keys import MINUTE_US, Scope, session_scope
from gateway.limits.local import Known, LastKnown, LocalLimits
from gateway.limits.terms import Terms
from gateway.project_settings.settings import LimitSettings

logger = logging.getLogger("gateway.limits")

_ASK_ALONE_MS = 1000
_REMEMBERED_PROJECTS = 4096
_UNKNOWN = b"unknown"
# How often Redis is asked whether the request log has answered, which another worker may have asked.
_LOOK_AGAIN_SECONDS = 0.01
# A log that was too slow is not waited for by everyone who comes next.
_NO_WAIT_SECONDS = 10.0
# Makes names longer than 64 bytes: of shorter ones Redis packs up to 128 into one string (zset-max-ziplist-value), and
# reads half of it for each that comes or goes.
_RESERVATION = "reservation:"

OnDoubt = Callable[[Scope, int], None]


class Doubt(NamedTuple):
    """What is in doubt about a scope: its requests that arrived before `since_us`, in microseconds.

    None when the log is not to be asked: another worker is at it, or nothing `is_unsure`. `last_us`: when the latest of
    the requests arrived that are counted after it."""

    since_us: int | None
    last_us: int
    is_unsure: bool


class Limiter:
    """One a worker. `on_doubt` is told of each scope whose spend has to be looked up in the request log, and up to
    which time, in microseconds. `patience`: seconds until Redis counts as away; `log_patience`: seconds that an
    admission may wait for the log to tell of a budget of which nothing is known."""

    def __init__(
        self,
        url: str,
        *,
        workers: int,
        lease_seconds: float,
        patience: float,
        on_doubt: OnDoubt,
        log_patience: float = 0.0,
    ) -> None:
        self._known = LastKnown()
        self._local = LocalLimits(self._known, workers)
        self._lease_ms = int(lease_seconds * 1000)
        self._on_doubt = on_doubt
        self._held: dict[str, Held] = {}
        self._refusing = False
        self._terms: dict[str, Terms] = {}
        # Each takes requests until it leaves for Redis.
        self._open_batches: dict[Terms, Batch] = {}
        self._loop = asyncio.get_running_loop()
        self._log_patience = log_patience
        self._no_wait_until = self._loop.time() if log_patience else float("inf")
        self._looks: dict[Scope, asyncio.Task[None]] = {}
        # What happened to these while Redis was away stands in the request log only.
        self._uncounted: dict[Scope, None] = {}
        self._redis = ScriptConnection(url, patience=patience, on_return=self._returned)
        self._renewal = self._loop.create_task(self._renew(), name="gateway.limits.renew")

    @property
    def is_connected(self) -> bool:
        """Whether Redis is asked; if not, this worker goes by its own figures."""
        return self._redis.is_open

    async def tried(self) -> None:
        """Returns when Redis was reached or found to be away. Who asks earlier gets this worker's own figures, and one
        that has just started has none."""
        await self._redis.tried()

    @property
    def waits(self) -> bool:
        return self._loop.time() >= self._no_wait_until

    async def close(self) -> None:
        tasks = [self._renewal, *self._looks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._redis.close()

    async def admit(self, limits: LimitSettings, claim: Claim) -> Admission:
        """Whether the claim fits into every limit of its project; if so it is counted in all, else in none."""
        terms = self._terms_of(limits, claim)
        session = session_scope(claim.project, claim.session_id) if terms.counts_session and claim.session_id else None
        held = Held(claim, f"{_RESERVATION}{claim.request_id}|{claim.cost}|{claim.arrived_us}", terms, session)
        try:
            batch = self._open_batches.get(terms) or self._new_batch(terms)
        except RedisAwayError:
            return self._local.admit(held)
        asked = batch.admit(held)
        try:
            refused_by, requests, tokens = await asked
        except RedisAwayError:
            return self._local.admit(held)
        except redis.RedisError as error:
            self._note_refusal(error)
            return self._local.admit(held)
        except asyncio.CancelledError:
            if asked.done() and not asked.cancelled() and asked.exception() is None and not asked.result()[0]:
                self.settle(held, 0, 0)
            raise
        if self._refusing:
            self._note_accepted()
        if refused_by:
            if refused_by == _UNKNOWN:
                await self._look(held.scopes())
                return await self.admit(limits, claim)
            return Admission(refused_by.decode(), requests, tokens, None)
        self._held[held.name] = held
        return Admission("", requests, tokens, held, batch.month_is_spent)

    def log_is_away(self) -> None:
        """The request log does not answer: for a while nobody waits for it."""
        if self._log_patience:
            self._no_wait_until = self._loop.time() + _NO_WAIT_SECONDS

    async def _look(self, scopes: list[Scope]) -> None:
        """Returns when the request log has been asked about all of them, or is not waited for any longer."""
        for scope in scopes:
            if scope not in self._looks:
                task = self._looks[scope] = self._loop.create_task(
                    self._wait_for_log(scope), name="gateway.limits.look"
                )
                task.add_done_callback(partial(self._looked, scope))
        # Who hangs up must not take it from the others who wait.
        await asyncio.gather(*(asyncio.shield(self._looks[scope]) for scope in scopes))

    async def _wait_for_log(self, scope: Scope) -> None:
        ends = self._loop.time() + self._log_patience
        while self.waits and self._loop.time() < ends:
            try:
                if await self._redis.run(scripts.LOOKED, [scope.spend], []):
                    return
            except (RedisAwayError, redis.RedisError):
                return
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)
        self.log_is_away()

    def _looked(self, scope: Scope, task: asyncio.Task[None]) -> None:
        del self._looks[scope]

    def settle(self, held: Held, tokens: int, cost: int) -> None:
        """Puts what a request used (tokens, units of cost) in the place of what it had reserved. Does not wait."""
        self._held.pop(held.name, None)
        if not held.name:
            self._local.settle(held, tokens, cost)
        terms = held.terms
        if terms.month is None and held.session is None and not terms.counts_tokens:
            return
        try:
            batch = self._open_batches.get(terms) or self._new_batch(terms)
        except RedisAwayError:
            self._settle_alone(held, tokens, cost)
        else:
            batch.settle(held, tokens, cost)

    async def since(self, scope: Scope) -> Doubt:
        """What is in doubt about a scope. Raises RedisAwayError."""
        arguments = [time_ns() // 1000, _ASK_ALONE_MS]
        since, standing, last = await self._redis.run(scripts.SINCE, [scope.spend, scope.held], arguments)
        self.learn(scope, self._known.of(scope), standing, tell=False)
        _, _, unsure, _ = standing
        return Doubt(int(since) if since else None, int(last), bool(unsure))

    async def raise_to(self, scope: Scope, since_us: int, spent: int, *, final: bool) -> bool:
        """Tells Redis what the request log holds of requests before `since_us`. False when it is too early or too late
        for that. Raises RedisAwayError."""
        arguments = [since_us, spent, int(final), time_ns() // 1000]
        done, standing = await self._redis.run(scripts.RAISE, [scope.spend, scope.held], arguments)
        self.learn(scope, self._known.of(scope), standing, tell=False)
        return bool(done)

    def known_of(self, scope: Scope) -> Known:
        return self._known.of(scope)

    def learn(self, scope: Scope, known: Known, standing: Sequence[Any], *, tell: bool = True) -> None:
        """What Redis said of a scope (scripts/spend.lua)."""
        base, after, unsure, since = standing
        spent = int(base) + int(after)
        if not unsure:
            known.spent = spent
            known.doubted = b""
            return
        # A Redis that was lost knows less than this worker does.
        known.spent = max(spent, known.spent)
        if tell and known.doubted != since:
            known.doubted = since
            self._on_doubt(scope, int(since))

    def close_batch(self, terms: Terms, batch: Batch) -> None:
        """Gives no more requests to `batch`: it leaves for Redis, or has failed."""
        if self._open_batches.get(terms) is batch:
            del self._open_batches[terms]

    def settlement_failed(self, settled: Settled, error: RedisAwayError | redis.ResponseError) -> None:
        if isinstance(error, redis.ResponseError):
            self._note_refusal(error)
        self._settle_alone(settled.held, settled.tokens, settled.cost)

    def _note_refusal(self, error: redis.RedisError) -> None:
        """Redis answers and does not do it: it is out of memory, or may not be written to."""
        if not self._refusing:
            logger.error("redis.refuses error=%s", error)
        self._refusing = True

    def _note_accepted(self) -> None:
        """It never was away: what it refused to count is looked up now."""
        self._refusing = False
        logger.warning("redis.accepts")
        self._returned()

    def _settle_alone(self, held: Held, tokens: int, cost: int) -> None:
        if held.name:
            self._local.settle(held, tokens, cost)
        for scope in held.scopes():
            self._uncounted[scope] = None

    def _terms_of(self, limits: LimitSettings, claim: Claim) -> Terms:
        found = self._terms.get(claim.project)
        minute, run_id = claim.arrived_us // MINUTE_US, self._redis.run_id
        if found is None or found.minute != minute or found.limits is not limits or found.run_id != run_id:
            if len(self._terms) >= _REMEMBERED_PROJECTS:
                self._terms.clear()
            found = Terms(limits, claim.project, minute, lease_ms=self._lease_ms, run_id=run_id)
            self._terms[claim.project] = found
        return found

    def _new_batch(self, terms: Terms) -> Batch:
        """That takes requests until it leaves. Raises RedisAwayError."""
        batch = Batch(terms, self, self._loop)
        self._redis.ask(batch)
        self._open_batches[terms] = batch
        return batch

    def _returned(self) -> None:
        self._local.forget()
        uncounted, self._uncounted = self._uncounted, {}
        now_us = time_ns() // 1000
        for scope in uncounted:
            answer = self._redis.run(scripts.DOUBT, [scope.spend], [now_us])
            answer.add_done_callback(partial(self._doubted, scope))

    def _doubted(self, scope: Scope, answer: asyncio.Future[Any]) -> None:
        if answer.cancelled() or answer.exception() is not None:
            self._uncounted[scope] = None
        else:
            self.learn(scope, self._known.of(scope), answer.result())

    async def _renew(self) -> None:
        """Most requests end long before their reservation does."""
        while True:
            await asyncio.sleep(self._lease_ms / 3000)
            by_scope: dict[Scope, list[str]] = {}
            for held in self._held.values():
                for scope in held.scopes():
                    by_scope.setdefault(scope, []).append(held.name)
            for scope, names in by_scope.items():
                if self._redis.is_open:
                    answer = self._redis.run(scripts.RENEW, [scope.held], [self._lease_ms, *names])
                    answer.add_done_callback(_note_renewal)


def _note_renewal(answer: asyncio.Future[Any]) -> None:
    error = None if answer.cancelled() else answer.exception()
    if error is not None and not isinstance(error, RedisAwayError):
        logger.error("renewal.failed error=%s", error)
