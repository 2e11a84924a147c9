"""Admission and settlement, over Redis where it answers and over this worker's own figures where it does not."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from time import time_ns
from typing import Any

import redis

from gateway.limits import scripts
from gateway.limits.claims import Admission, Claim, Held, Standing
from gateway.limits.connection import RedisAwayError, ScriptConnection
from gateway.limits.keys import Scope, requests_key, tokens_key
from gateway.limits.local import LastKnown, LocalLimits
from gateway.limits.terms import terms_of
from gateway.snapshot.settings import LimitSettings

logger = logging.getLogger("gateway.limits")

# Until Redis counts as away. A false alarm costs more than one slow answer: budgets then hold for each worker alone.
_PATIENCE_SECONDS = 0.25
_ASK_ALONE_MS = 1000

OnDoubt = Callable[[Scope, int], None]


class Limiter:
    """One a worker. `on_doubt` is told of each scope whose spend has to be looked up in the request log, and up to
    which time, in microseconds."""

    def __init__(self, url: str, *, workers: int, lease_seconds: float, on_doubt: OnDoubt) -> None:
        self._known = LastKnown()
        self._local = LocalLimits(self._known, workers)
        self._lease_ms = int(lease_seconds * 1000)
        self._on_doubt = on_doubt
        self._held: dict[str, Held] = {}
        self._refusing = False
        # What happened to these while Redis was away stands in the request log only.
        self._uncounted: dict[Scope, None] = {}
        self._redis = ScriptConnection(url, patience=_PATIENCE_SECONDS, on_return=self._returned)
        self._renewal = asyncio.get_running_loop().create_task(self._renew(), name="gateway.limits.renew")

    @property
    def is_connected(self) -> bool:
        """Whether Redis is asked; if not, this worker goes by its own figures."""
        return self._redis.is_open

    async def close(self) -> None:
        self._renewal.cancel()
        await asyncio.gather(self._renewal, return_exceptions=True)
        await self._redis.close()

    async def admit(self, limits: LimitSettings, claim: Claim) -> Admission:
        """Whether the claim fits into every limit of its project; if so it is counted in all, else in none."""
        held = Held(
            claim,
            f"{claim.request_id}|{claim.cost}|{claim.arrived_us}",
            limits.tokens_per_minute is not None,
            claim.month_scope(limits),
            claim.session_scope(limits),
        )
        try:
            asked = self._redis.run(
                scripts.ADMIT, _keys(held), self._arguments(limits, held), partial(self._release, held)
            )
        except RedisAwayError:
            return self._local.admit(limits, claim)
        try:
            answer = await asked
        except RedisAwayError:
            return self._local.admit(limits, claim)
        except redis.RedisError as error:
            self._note_refusal(error)
            return self._local.admit(limits, claim)
        except asyncio.CancelledError:
            if asked.done() and not asked.cancelled() and asked.exception() is None:
                self._release(held, asked.result())
            raise
        self._refusing = False
        refused_by, requests, tokens, *standings = answer
        for scope, standing in zip((held.month, held.session), standings, strict=True):
            self._learn(scope, standing)
        if refused_by:
            return Admission(refused_by.decode(), requests, tokens, None)
        self._held[held.name] = held
        return Admission("", requests, tokens, held, self._known.get(held.month))

    def settle(self, held: Held, tokens: int, cost: int) -> None:
        """Puts what a request used (tokens, units of cost) in the place of what it had reserved. Does not wait."""
        self._held.pop(held.name, None)
        if not held.name:
            self._local.settle(held, tokens, cost)
        scopes = held.scopes()
        if not scopes and not held.counts_tokens:
            return
        extra = 0
        if held.counts_tokens:
            extra = tokens - held.claim.tokens if held.name else tokens
        now_us = time_ns() // 1000
        flags = [int(held.month is not None), int(held.session is not None)]
        try:
            answer = self._redis.run(
                scripts.SETTLE, _keys(held)[1:], [held.name, extra, cost, held.claim.arrived_us, now_us, *flags]
            )
        except RedisAwayError:
            self._settle_alone(held, tokens, cost)
        else:
            answer.add_done_callback(partial(self._settled, held, tokens, cost))

    async def since(self, scope: Scope) -> tuple[int | None, bool]:
        """Up to which time, in microseconds, the request log is to be asked about a scope, None when it is not (another
        worker is at it, or nothing is in doubt); and whether it is in doubt. Raises RedisAwayError."""
        arguments = [time_ns() // 1000, _ASK_ALONE_MS]
        since, standing = await self._redis.run(scripts.SINCE, [scope.spend, scope.held], arguments)
        self._learn(scope, standing, tell=False)
        return (int(since) if since else None), read_standing(standing).unsure

    async def raise_to(self, scope: Scope, since_us: int, spent: int, *, final: bool) -> bool:
        """Tells Redis what the request log holds of requests before `since_us`. False when it is too early or too late
        for that. Raises RedisAwayError."""
        arguments = [since_us, spent, int(final), time_ns() // 1000]
        done, standing = await self._redis.run(scripts.RAISE, [scope.spend, scope.held], arguments)
        self._learn(scope, standing, tell=False)
        return bool(done)

    def _settled(self, held: Held, tokens: int, cost: int, answer: asyncio.Future[Any]) -> None:
        error = None if answer.cancelled() else answer.exception()
        if answer.cancelled() or error is not None:
            if isinstance(error, redis.RedisError):
                self._note_refusal(error)
            self._settle_alone(held, tokens, cost)
            return
        for scope, standing in zip((held.month, held.session), answer.result(), strict=True):
            self._learn(scope, standing)

    def _release(self, held: Held, answer: Sequence[Any]) -> None:
        """It was admitted, and nobody is there any more to use what it reserved."""
        if not answer[0]:
            self.settle(held, 0, 0)

    def _note_refusal(self, error: redis.RedisError) -> None:
        """Redis answers and does not do it: it is out of memory, or may not be written to."""
        if not self._refusing:
            logger.error("redis.refuses error=%s", error)
        self._refusing = True

    def _settle_alone(self, held: Held, tokens: int, cost: int) -> None:
        if held.name:
            self._local.settle(held, tokens, cost)
        for scope in held.scopes():
            self._uncounted[scope] = None

    def _learn(self, scope: Scope | None, standing: Sequence[Any], *, tell: bool = True) -> None:
        if scope is None or not standing:
            return
        base, after, _, unsure, since_us = standing
        spent = int(base) + int(after)
        # A Redis that was lost knows less than this worker does.
        self._known.learn(scope, max(spent, self._known.get(scope)) if unsure else spent)
        if unsure and tell:
            self._on_doubt(scope, int(since_us))

    def _arguments(self, limits: LimitSettings, held: Held) -> list[bytes | str | int]:
        claim, terms = held.claim, terms_of(limits)
        return [
            held.name,
            terms.requests,
            terms.tokens,
            claim.tokens,
            terms.month,
            terms.hard_stop,
            terms.session if held.session is not None else "",
            claim.cost,
            time_ns() // 1000,
            self._lease_ms,
            self._known.get(held.month),
            self._known.get(held.session),
            self._redis.run_id,
            limits.set_at_us,
        ]

    def _returned(self) -> None:
        self._local.forget()
        uncounted, self._uncounted = self._uncounted, {}
        now_us = time_ns() // 1000
        for scope in uncounted:
            is_month = int(bool(scope.month))
            keys = [tokens_key(scope.project, 0), scope.spend, scope.held, scope.spend, scope.held]
            answer = self._redis.run(scripts.SETTLE, keys, ["", 0, 0, 0, now_us, is_month, 1 - is_month])
            answer.add_done_callback(partial(self._doubted, scope))

    def _doubted(self, scope: Scope, answer: asyncio.Future[Any]) -> None:
        if answer.cancelled() or answer.exception() is not None:
            self._uncounted[scope] = None
        else:
            month, session = answer.result()
            self._learn(scope, month or session)

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


def read_standing(answer: Sequence[Any]) -> Standing:
    """base, after, reserved, unsure, since, as the scripts return them."""
    base, after, reserved, unsure, since = answer
    return Standing(int(base) + int(after), int(reserved), bool(unsure), int(since))


def _note_renewal(answer: asyncio.Future[Any]) -> None:
    error = None if answer.cancelled() else answer.exception()
    if error is not None and not isinstance(error, RedisAwayError):
        logger.error("renewal.failed error=%s", error)


def _keys(held: Held) -> list[str]:
    claim = held.claim
    keys = [requests_key(claim.project, claim.minute), tokens_key(claim.project, claim.minute)]
    for scope in (held.month, held.session):
        # A key that the script does not touch still has to lie on the same node.
        keys += [scope.spend, scope.held] if scope is not None else [keys[0], keys[0]]
    return keys
