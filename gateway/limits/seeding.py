"""Looks up in the request log the spend that Redis cannot know: after Redis was lost or down, or a worker died.

A scope is looked up at once, and again until every request that arrived before its `since` is certainly in the log. The
log's sum can only raise the spend, so an early lookup does no harm (scripts/spend.lua).

A host's clock may be set back: a logged request with a time in the future, later than any counted request, arrived
before too.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from math import inf
from time import monotonic, time_ns
from typing import NamedTuple
from uuid import UUID

from redis import RedisError

from analytics.errors import AnalyticsLimitError, AnalyticsQueryError, AnalyticsUnavailableError
from analytics.queries.spend import NEVER, key_spends, project_spend, session_spends, team_spends, user_spends
from gateway.limits.channel import RedisAwayError
from gateway.limits.keys import Scope, month_limits
from gateway.limits.limiter import Limiter
from gateway.limits.units import to_units

logger = logging.getLogger("gateway.limits")

_STORE_ERRORS = (AnalyticsUnavailableError, AnalyticsLimitError, AnalyticsQueryError)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The times of the lookups after `since`, in seconds: the first makes the spend about right, the others follow as
# records arrive.
_QUERY_TIMES = (0.0, 2.0, 10.0, 30.0, 120.0)
_RETRY_SECONDS = 2.0
_MAX_SCOPES = 500
_MAX_LOOKUPS = 8


class Times(NamedTuple):
    """The bounds of a lookup in microseconds: requests that arrived before the first or after the second."""

    until_us: int
    beyond_us: int


class Seeder:
    """Looks up doubtful spends. Each worker has one; only one worker at a time looks up a scope.

    Times are monotonic: setting the clock neither delays a lookup nor makes one the last.
    """

    def __init__(self, settle_seconds: float) -> None:
        """`settle_seconds` is the longest time from a request's arrival until it is in the log."""
        self._settle = settle_seconds
        self._due: dict[Scope, float] = {}
        self._since: dict[Scope, int] = {}
        # The time when this worker first learned of the scope's doubt.
        self._learned_at: dict[Scope, float] = {}
        self._has_work = asyncio.Event()
        self._failing = False
        self._failed: BaseException | None = None
        self._lookups: set[asyncio.Task[None]] = set()
        # Threads of its own: while the log is slow, configuration is read in those of the event loop.
        self._threads = ThreadPoolExecutor(_MAX_LOOKUPS, thread_name_prefix="gateway.seeding")

    def doubt(self, scope: Scope, since_us: int) -> None:
        """Cheap, because it runs for every answer of Redis that has a doubt."""
        if self._since.get(scope) != since_us:
            self._since[scope] = since_us
            self._learned_at[scope] = monotonic()
            self._due[scope] = 0.0
            self._has_work.set()

    async def run(self, limiter: Limiter) -> None:
        try:
            while True:
                await self._wait()
                now = monotonic()
                times = await self._times_of(limiter, [scope for scope, at in self._due.items() if at <= now])
                for group in _groups(times):
                    # A lookup that takes long keeps no other one waiting.
                    self._due.update(dict.fromkeys(group, inf))
                    task = asyncio.create_task(self._look_up(limiter, group), name="gateway.seeding.look")
                    self._lookups.add(task)
                    task.add_done_callback(self._looked_up)
        finally:
            for task in self._lookups:
                task.cancel()

    def _looked_up(self, task: asyncio.Task[None]) -> None:
        self._lookups.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._failed = task.exception()
            self._has_work.set()

    async def _look_up(self, limiter: Limiter, times: Mapping[Scope, Times]) -> None:
        queried_at = monotonic()
        try:
            spends = await asyncio.get_running_loop().run_in_executor(self._threads, _spends, times)
            self._failing = False
            limiter.log_answers()
            for scope, (since_us, _) in times.items():
                await self._raise(limiter, scope, since_us, spends.get(scope, 0), queried_at)
        except _STORE_ERRORS as error:
            self._note_failure(type(error).__name__)
            limiter.log_is_away()
        finally:
            # Scopes that have not got another time were not looked up.
            retry_at = monotonic() + _RETRY_SECONDS
            self._due.update({scope: retry_at for scope in times if self._due.get(scope) == inf})
            self._has_work.set()

    async def _wait(self) -> None:
        if self._failed is not None:
            failed, self._failed = self._failed, None
            raise failed
        soonest = min(self._due.values(), default=inf)
        self._has_work.clear()
        try:
            async with asyncio.timeout(None if soonest == inf else max(soonest - monotonic(), 0.0)):
                await self._has_work.wait()
        except TimeoutError:
            return

    async def _times_of(self, limiter: Limiter, scopes: Iterable[Scope]) -> dict[Scope, Times]:
        times: dict[Scope, Times] = {}
        for scope in list(scopes)[:_MAX_SCOPES]:
            try:
                doubt = await limiter.since(scope)
            except (RedisAwayError, RedisError):
                self._due[scope] = monotonic() + _RETRY_SECONDS
                continue
            if doubt.since_us is not None:
                if self._since.get(scope) != doubt.since_us:
                    self._since[scope], self._learned_at[scope] = doubt.since_us, monotonic()
                times[scope] = Times(doubt.since_us, max(doubt.since_us, doubt.last_us, time_ns() // 1000))
            elif doubt.is_unsure:
                self._due[scope] = monotonic() + _RETRY_SECONDS
            else:
                self._forget(scope)
        return times

    async def _raise(self, limiter: Limiter, scope: Scope, since_us: int, spent: int, queried_at: float) -> None:
        learned_at = self._learned_at.get(scope)
        if learned_at is None:
            return  # A later lookup has settled it meanwhile.
        # The age counts from the query's start, since requests that arrived during the query are not in the sum.
        age = queried_at - learned_at
        final = age >= self._settle
        try:
            done = await limiter.raise_to(scope, since_us, spent, final=final)
        except (RedisAwayError, RedisError):
            done = False
        if done and final:
            self._forget(scope)
        elif done:
            looks = [look for look in (*_QUERY_TIMES, self._settle) if look > age]
            self._due[scope] = learned_at + min(looks, default=self._settle)
        elif self._since.get(scope) == since_us:
            self._due[scope] = monotonic() + _RETRY_SECONDS

    def _forget(self, scope: Scope) -> None:
        for known in (self._due, self._since, self._learned_at):
            known.pop(scope, None)

    def _note_failure(self, reason: str) -> None:
        if not self._failing:
            logger.warning("seeding.failed reason=%s", reason)
        self._failing = True


def _groups(requested: Mapping[Scope, Times]) -> Iterable[Mapping[Scope, Times]]:
    groups: dict[tuple[str, str, str], dict[Scope, Times]] = {}
    for scope, times in requested.items():
        groups.setdefault((scope.project, _kind_of(scope), scope.month), {})[scope] = times
    return groups.values()


def _kind_of(scope: Scope) -> str:
    if scope.team_id:
        return "team"
    if scope.key_id:
        return "key"
    if scope.user_id:
        return "user"
    return "session" if scope.session_id else "project"


def _spends(group: Mapping[Scope, Times]) -> dict[Scope, int]:
    """Returns units of cost by scope.

    The queries also wait for a store that seems dead, because a budget would be exceeded without them.
    """
    first = next(iter(group))
    project, kind = UUID(first.project), _kind_of(first)
    if kind == "project":
        return {scope: _of_project(project, scope.month, times) for scope, times in group.items()}
    return {scope: to_units(cost) for scope, cost in _of_group(project, kind, first.month, group).items()}


def _of_project(project: UUID, month: str, times: Times) -> int:
    start, end = month_limits(month)
    until, beyond = (min(max(start, _time(time)), end) for time in times)
    return to_units(project_spend(project, start, until, beyond=(beyond, end), hasty=False))


def _of_group(project: UUID, kind: str, month: str, times: Mapping[Scope, Times]) -> dict[Scope, Decimal]:
    if kind == "session":
        sessions = {scope.session_id: scope for scope in times}
        until = {name: _time(times[scope].until_us) for name, scope in sessions.items()}
        beyond = {name: _time(times[scope].beyond_us) for name, scope in sessions.items()}
        spends = session_spends(project, until, beyond=beyond, hasty=False)
        return {sessions[name]: cost for name, cost in spends.items()}
    ids: dict[str | int, Scope] = {scope.team_id or scope.key_id or scope.user_id: scope for scope in times}
    limits = month_limits(month) if month else (_EPOCH, NEVER)
    ranges = {name: (_time(times[scope].until_us), _time(times[scope].beyond_us)) for name, scope in ids.items()}
    spends_of = {"team": team_spends, "key": key_spends, "user": user_spends}[kind]
    return {ids[name]: cost for name, cost in spends_of(project, ranges, limits, hasty=False).items()}


def _time(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)
