"""Looks up in the request log what Redis cannot know: after it was lost, while it was away, of workers that died.

A scope is asked about at once, and again until everything that arrived before its `since` has certainly reached the
log. What the log says can only raise the figure, so that asking too early does no harm (scripts/spend.lua).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from time import time
from uuid import UUID

from redis import RedisError

from analytics.errors import AnalyticsLimitError, AnalyticsQueryError, AnalyticsUnavailableError
from analytics.queries.spend import project_spend, session_spends
from gateway.limits.channel import RedisAwayError
from gateway.limits.keys import Scope, month_limits
from gateway.limits.limiter import Limiter
from gateway.limits.units import to_units

logger = logging.getLogger("gateway.limits")

_STORE_ERRORS = (AnalyticsUnavailableError, AnalyticsLimitError, AnalyticsQueryError)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# After `since`, in seconds: at once, for the figure to be about right, then as records come in.
_LOOKS = (0.0, 2.0, 10.0, 30.0, 120.0)
_RETRY_SECONDS = 2.0
_MOST_SESSIONS = 500


class Seeder:
    """One a worker; of several workers one at a time asks about a scope."""

    def __init__(self, settle_seconds: float) -> None:
        """`settle_seconds`: how long after its arrival a request is in the log at the latest."""
        self._settle = settle_seconds
        self._due: dict[Scope, float] = {}
        self._since: dict[Scope, int] = {}
        self._news = asyncio.Event()
        self._failing = False

    def doubt(self, scope: Scope, since_us: int) -> None:
        """Cheap: called for every answer of Redis that says so."""
        if self._since.get(scope) != since_us:
            self._since[scope] = since_us
            self._due[scope] = 0.0
            self._news.set()

    async def run(self, limiter: Limiter) -> None:
        """For as long as the worker lives."""
        while True:
            await self._wait()
            now = time()
            due = [scope for scope, at in self._due.items() if at <= now]
            asked = await self._ask(limiter, due)
            asked_at = time()
            try:
                found = await asyncio.to_thread(_spends, asked)
            except _STORE_ERRORS as error:
                self._note_failure(type(error).__name__)
                limiter.log_is_away()
                self._due.update(dict.fromkeys(asked, time() + _RETRY_SECONDS))
                continue
            self._failing = False
            for scope, since_us in asked.items():
                await self._raise(limiter, scope, since_us, found.get(scope, 0), asked_at)

    async def _wait(self) -> None:
        soonest = min(self._due.values(), default=None)
        self._news.clear()
        try:
            async with asyncio.timeout(None if soonest is None else max(soonest - time(), 0.0)):
                await self._news.wait()
        except TimeoutError:
            return

    async def _ask(self, limiter: Limiter, scopes: Iterable[Scope]) -> dict[Scope, int]:
        """Of each scope the time up to which the log is to be asked, in microseconds."""
        asked: dict[Scope, int] = {}
        for scope in list(scopes)[:_MOST_SESSIONS]:
            try:
                since_us, unsure = await limiter.since(scope)
            except (RedisAwayError, RedisError):
                self._due[scope] = time() + _RETRY_SECONDS
                continue
            if since_us is not None:
                asked[scope] = since_us
            elif unsure:
                self._due[scope] = time() + _RETRY_SECONDS
            else:
                self._forget(scope)
        return asked

    async def _raise(self, limiter: Limiter, scope: Scope, since_us: int, spent: int, asked_at: float) -> None:
        # When the log was asked: what came in while it answered is not in the sum.
        age = asked_at - since_us / 1_000_000
        final = age >= self._settle
        try:
            done = await limiter.raise_to(scope, since_us, spent, final=final)
        except (RedisAwayError, RedisError):
            done = False
        if done and final:
            self._forget(scope)
        elif done:
            looks = [look for look in (*_LOOKS, self._settle) if look > age]
            self._due[scope] = since_us / 1_000_000 + min(looks, default=self._settle)
        else:
            self._due[scope] = time() + _RETRY_SECONDS

    def _forget(self, scope: Scope) -> None:
        self._due.pop(scope, None)
        self._since.pop(scope, None)

    def _note_failure(self, reason: str) -> None:
        if not self._failing:
            logger.warning("seeding.failed reason=%s", reason)
        self._failing = True


def _spends(asked: Mapping[Scope, int]) -> dict[Scope, int]:
    """Units of cost by scope."""
    found: dict[Scope, int] = {}
    sessions: dict[str, dict[str, Scope]] = {}
    for scope, since_us in asked.items():
        if scope.month:
            start, end = month_limits(scope.month)
            until = min(max(start, _time(since_us)), end)
            found[scope] = to_units(project_spend(UUID(scope.project), start, until))
        else:
            sessions.setdefault(scope.project, {})[scope.session_id] = scope
    for project, scopes in sessions.items():
        limits = {session_id: _time(asked[scope]) for session_id, scope in scopes.items()}
        for session_id, cost in session_spends(UUID(project), limits).items():
            found[scopes[session_id]] = to_units(cost)
    return found


def _time(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)
