from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from time import time
from typing import Any
from uuid import UUID

import redis
from django.conf import settings

from analytics.errors import AnalyticsLimitError, AnalyticsUnavailableError
from analytics.queries.spend import NEVER, key_spends, project_spend, session_spends, team_spends, user_spends
from analytics.shipper.spool_status import oldest_unshipped_seconds
from core.redis.clients import run_id_of, shared_client
from core.redis.failures import REDIS_ERRORS
from gateway.limits.keys import (
    ALLOWANCE_PREFIX,
    Scope,
    leased_key,
    month_limits,
    open_key,
    requests_key,
    tokens_key,
)
from gateway.limits.units import from_units

_TIMEOUT_SECONDS = 1.0
# The request log gets records within five seconds while the shipper and the store work, a busy machine apart.
_MAX_LAG_SECONDS = 10.0
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Spend:
    """The spend of a month or session: `spent_usd` by ended requests, `reserved_usd` by requests in flight.

    `is_certain` is True if Redis knows all of it, or if the request log was queried and none of this host's records has
    been on its way to the log for long.
    """

    spent_usd: Decimal
    reserved_usd: Decimal
    is_certain: bool


@dataclass(frozen=True, slots=True)
class MinuteRates:
    """The use of one minute, without what workers have leased ahead. Tokens of requests in flight are estimates.

    A figure is None if Redis counts nothing or is down.
    """

    requests: int | None
    tokens: int | None


class Figures:
    """Reads for one page or answer. After Redis fails once, `is_away` is set and Redis is not queried again."""

    def __init__(self) -> None:
        self.is_away = False
        # The ids of the starts of Redis, by the project whose keys the server holds.
        self._run_ids: dict[str, str] = {}

    def month(self, project_id: UUID, month: str) -> Spend:
        """Raises AnalyticsUnavailableError or AnalyticsLimitError if neither Redis nor the log knows the spend."""
        start, end = month_limits(month)
        until = max(start, min(end, datetime.now(UTC)))
        scope = Scope(str(project_id), month=month)
        return self._spend(scope, lambda: project_spend(project_id, start, until))

    def session(self, project_id: UUID, session_id: str) -> Spend:
        scope = Scope(str(project_id), session_id=session_id)
        now = datetime.now(UTC)
        return self._spend(scope, lambda: session_spends(project_id, {session_id: now}).get(session_id, Decimal(0)))

    def caller_month(
        self, project_id: UUID, month: str, *, key_id: int = 0, user_id: str = "", team_id: int = 0
    ) -> Spend:
        scope = Scope(str(project_id), month=month, key_id=key_id, user_id=user_id, team_id=team_id)
        return self._caller_spend(scope, month_limits(month))

    def caller_total(self, project_id: UUID, *, key_id: int = 0, team_id: int = 0) -> Spend:
        return self._caller_spend(Scope(str(project_id), key_id=key_id, team_id=team_id), (_EPOCH, NEVER))

    def _caller_spend(self, scope: Scope, limits: tuple[datetime, datetime]) -> Spend:
        project_id, ranges = UUID(scope.project), (limits[1], limits[1])

        def of_log() -> Decimal:
            if scope.team_id:
                return team_spends(project_id, {scope.team_id: ranges}, limits).get(scope.team_id, Decimal(0))
            if scope.key_id:
                return key_spends(project_id, {scope.key_id: ranges}, limits).get(scope.key_id, Decimal(0))
            return user_spends(project_id, {scope.user_id: ranges}, limits).get(scope.user_id, Decimal(0))

        return self._spend(scope, of_log)

    def open_requests(self, project_id: UUID, caller: str) -> int | None:
        found = self._of_requests(open_key(str(project_id), caller))
        return None if found is None else len(found)

    def minute(self, project_id: UUID, minute: int, caller: str = "") -> MinuteRates:
        project = str(project_id)
        keys = [key(project, minute, caller) for key in (requests_key, tokens_key)]
        found = self._ask(lambda client: (client.hgetall(leased_key(project)), client.mget(keys)))
        if found is None:
            return MinuteRates(None, None)
        by_allowance, counted = found
        leased = [text.split(b" ") for text in by_allowance.values()]
        of_counter = [(int(words[0]), int(words[1])) for words in leased if keys[0].encode() in words[2:]]
        used = [
            # What is leased was read a moment earlier.
            None if count is None else max(int(count) - sum(each[place] for each in of_counter), 0)
            for place, count in enumerate(counted)
        ]
        return MinuteRates(*used)

    def _spend(self, scope: Scope, of_log: Any) -> Spend:
        found = self._ask(lambda client: client.hmget(scope.spend, "base", "after", "unsure", "since", "run"))
        base, after, unsure, since, run = found or [None] * 5
        spent, reserved = from_units(int(base or 0) + int(after or 0)), from_units(self._reserved(scope))
        if since is not None and unsure is None and run is not None and run.decode() == self._run_id(scope):
            return Spend(spent, reserved, is_certain=self._log_is_recent)
        try:
            # Redis and the log may each know of ended requests that the other does not know yet.
            return Spend(max(spent, of_log()), reserved, is_certain=self._log_is_recent)
        except (AnalyticsUnavailableError, AnalyticsLimitError):
            if since is None:
                raise
            return Spend(spent, reserved, is_certain=False)

    @cached_property
    def _log_is_recent(self) -> bool:
        return oldest_unshipped_seconds(settings.SPOOL_DIR) <= _MAX_LAG_SECONDS

    def _reserved(self, scope: Scope) -> int:
        return sum(int(name.split(b"|")[1]) for name in self._of_requests(scope.reservations) or ())

    def _of_requests(self, key: str) -> list[bytes] | None:
        """Returns requests' reservations; None if Redis is down.

        Omits what workers have leased ahead, and expired reservations, which stay in Redis until the next admission.
        """
        names = self._ask(lambda client: client.zrangebyscore(key, time() * 1000, "+inf"))
        if names is None:
            return None
        return [name for name in names if not name.startswith(ALLOWANCE_PREFIX.encode())]

    def _run_id(self, scope: Scope) -> str | None:
        if scope.project not in self._run_ids:
            found = self._ask(lambda client: run_id_of(client, scope.spend))
            if found is None:
                return None
            self._run_ids[scope.project] = found
        return self._run_ids[scope.project]

    def _ask(self, ask: Callable[[redis.Redis], Any]) -> Any:
        if self.is_away:
            return None
        try:
            return ask(shared_client(settings.REDIS_URL, seconds=_TIMEOUT_SECONDS))
        except REDIS_ERRORS:
            self.is_away = True
            return None
