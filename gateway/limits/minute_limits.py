"""The limits of requests of one project in one minute: of the project, session, team, API key and end user.

They are built once for all requests that share the same limits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec

from core.caller_limits import CallerLimits
from gateway.limits.keys import MINUTE_US, Scope, caller_part, month_of, session_scope
from gateway.limits.terms import (
    MONTH_TTL,
    SESSION_TTL,
    TOTAL_TTL,
    Budget,
    Counter,
    Places,
    budget_of,
    counter_of,
    places_of,
)
from gateway.project_settings.limits import ProjectLimits

T = TypeVar("T")

# Clients choose the names of sessions and users, so their number is bounded.
_MAX_SUBJECTS = 20_000


class _Holder(msgspec.Struct, frozen=True, eq=False):
    limits: CallerLimits
    counter: Counter | None
    places: Places | None
    budgets: tuple[Budget, ...]


class Caller(msgspec.Struct, frozen=True, gc=False):
    """The team, API key and end user of a request if they have limits; 0 or empty otherwise."""

    key_id: int = 0
    key_limits: CallerLimits | None = None
    user_id: str = ""
    user_limits: CallerLimits | None = None
    team_id: int = 0
    team_limits: CallerLimits | None = None

    @property
    def limits(self) -> list[CallerLimits]:
        found = self.team_limits, self.key_limits, self.user_limits
        return [limits for limits in found if limits is not None]


NO_CALLER = Caller()


class AppliedLimits:
    """All limits of a request, in the order in which they are checked.

    `month` is the project's monthly budget or None. `is_settled`: the end of a request changes a count. `is_near`:
    False if the latest admission left plenty of all limits. `is_replaced`: others apply in their place. `asked` counts
    requests for which Redis was asked, until the worker leases. `numbers` and `subject` number these limits in a batch
    that begins with them (scripts/batch.lua).
    """

    __slots__ = (
        "asked",
        "budgets",
        "caller",
        "counters",
        "is_near",
        "is_replaced",
        "is_settled",
        "month",
        "numbers",
        "places",
        "subject",
        "token_counters",
    )

    def __init__(
        self,
        counter: Counter | None,
        month: Budget | None,
        session: Budget | None,
        holders: Sequence[_Holder] = (),
        caller: Caller = NO_CALLER,
    ) -> None:
        self.caller = caller
        self.counters = _present((counter, *(holder.counter for holder in holders)))
        self.token_counters = tuple(found for found in self.counters if found.tokens_limit is not None)
        self.places = _present(holder.places for holder in holders)
        self.month = month
        self.is_near = True
        self.is_replaced = False
        self.asked = 0
        of_callers = [budget for holder in holders for budget in holder.budgets]
        self.budgets = _present((month, *of_callers, session))
        self.is_settled = bool(self.token_counters or self.places or self.budgets)
        counters = {counter.requests: number for number, counter in enumerate(self.counters, 1)}
        places = {each.key: number for number, each in enumerate(self.places, 1)}
        budgets = {budget.scope.spend: number for number, budget in enumerate(self.budgets, 1)}
        self.numbers = {**counters, **places, **budgets}
        of_tokens = [counters[counter.requests] for counter in self.token_counters]
        self.subject = [*counters.values()], of_tokens, [*places.values()], [*budgets.values()]

    @property
    def may_refuse(self) -> bool:
        return bool(self.counters or self.places) or any(budget.refuses for budget in self.budgets)

    def key_of(self, limit: str) -> str:
        for counter in self.counters:
            if limit in (f"{counter.wire[0]}requests", f"{counter.wire[0]}tokens"):
                return counter.requests
        for places in self.places:
            if limit == places.wire[0]:
                return places.key
        return next((budget.scope.spend for budget in self.budgets if budget.name == limit), "")

    def of_budgets(self) -> AppliedLimits:
        found = AppliedLimits(None, None, None, caller=self.caller)
        found.month, found.budgets, found.is_settled = self.month, self.budgets, bool(self.budgets)
        found.numbers = {budget.scope.spend: number for number, budget in enumerate(self.budgets, 1)}
        found.subject = [], [], [], [*found.numbers.values()]
        return found


class MinuteLimits:
    def __init__(self, limits: ProjectLimits, project: str, minute: int) -> None:
        self.limits = limits
        self.minute = minute
        self._project = project
        self._month = month_of(minute * MINUTE_US)
        self._counter = counter_of(project, minute, limits.requests_per_minute, limits.tokens_per_minute)
        self._budget = budget_of(
            Scope(project, month=self._month),
            limits.monthly_budget_usd,
            "month",
            ttl=MONTH_TTL,
            set_at_us=limits.set_at_us,
            refuses=limits.hard_stop,
        )
        self._plain = AppliedLimits(self._counter, self._budget, None)
        self._applied: dict[tuple[int, int, str, str], AppliedLimits] = {}
        self._holders: dict[str, _Holder] = {}

    def applied(self, session_id: str, caller: Caller) -> AppliedLimits:
        if self.limits.session_budget_usd is None:
            session_id = ""
        if caller is NO_CALLER and not session_id:
            return self._plain
        name = caller.team_id, caller.key_id, caller.user_id, session_id
        found = self._applied.get(name)
        if found is None or not _are_same(found.caller, caller):
            if len(self._applied) >= _MAX_SUBJECTS:
                self._applied.clear()
            if found is not None:
                found.is_replaced = True
            found = self._applied[name] = self._new(session_id, caller)
        return found

    def _new(self, session_id: str, caller: Caller) -> AppliedLimits:
        holders = []
        if caller.team_limits is not None:
            holders.append(self._holder("team_", caller.team_limits, team_id=caller.team_id))
        if caller.key_limits is not None:
            holders.append(self._holder("key_", caller.key_limits, key_id=caller.key_id))
        if caller.user_limits is not None:
            holders.append(self._holder("user_", caller.user_limits, user_id=caller.user_id))
        session = None
        if session_id:
            scope = session_scope(self._project, session_id)
            amount, set_at_us = self.limits.session_budget_usd, self.limits.set_at_us
            session = budget_of(scope, amount, "session", ttl=SESSION_TTL, set_at_us=set_at_us)
        return AppliedLimits(self._counter, self._budget, session, holders, caller)

    def _holder(
        self, name: str, limits: CallerLimits, *, key_id: int = 0, user_id: str = "", team_id: int = 0
    ) -> _Holder:
        caller = caller_part(key_id, user_id, team_id)
        found = self._holders.get(caller)
        if found is not None and found.limits is limits:
            return found
        if len(self._holders) >= _MAX_SUBJECTS:
            self._holders.clear()
        project, set_at_us = self._project, limits.set_at_us
        month = Scope(project, month=self._month, key_id=key_id, user_id=user_id, team_id=team_id)
        total = Scope(project, key_id=key_id, user_id=user_id, team_id=team_id)
        budgets = (
            budget_of(month, limits.monthly_budget_usd, f"{name}month", ttl=MONTH_TTL, set_at_us=set_at_us),
            budget_of(total, limits.total_budget_usd, f"{name}total", ttl=TOTAL_TTL, set_at_us=set_at_us),
        )
        rates = limits.requests_per_minute, limits.tokens_per_minute
        found = self._holders[caller] = _Holder(
            limits,
            counter_of(project, self.minute, *rates, name=name, caller=caller),
            places_of(project, limits.concurrent_requests, name=f"{name}concurrency", caller=caller),
            _present(budgets),
        )
        return found


def _present(found: Iterable[T | None]) -> tuple[T, ...]:
    return tuple(item for item in found if item is not None)


def _are_same(one: Caller, other: Caller) -> bool:
    return (
        one.key_limits is other.key_limits
        and one.user_limits is other.user_limits
        and one.team_limits is other.team_limits
    )
