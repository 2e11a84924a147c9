"""What a worker goes by while Redis is away: its share of the rates, and the spend that it last knew."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from gateway.limits.claims import Admission, Claim, Held
from gateway.limits.keys import Scope
from gateway.limits.units import to_units
from gateway.project_settings.settings import LimitSettings

if TYPE_CHECKING:
    from decimal import Decimal

_REMEMBERED_SCOPES = 20_000


class Known:
    """Of one scope: its spend in units, and since when it is in doubt, as Redis says it; empty for what is certain."""

    __slots__ = ("doubted", "spent")

    def __init__(self) -> None:
        self.spent = 0
        self.doubted = b""


class LastKnown:
    """Of the scopes that were asked about most recently."""

    def __init__(self) -> None:
        self._by_key: OrderedDict[str, Known] = OrderedDict()

    def of(self, scope: Scope) -> Known:
        by_key = self._by_key
        found = by_key.get(scope.spend)
        if found is None:
            found = by_key[scope.spend] = Known()
            if len(by_key) > _REMEMBERED_SCOPES:
                by_key.popitem(last=False)
        else:
            by_key.move_to_end(scope.spend)
        return found


class _Minute:
    __slots__ = ("number", "requests", "tokens")

    def __init__(self, number: int) -> None:
        self.number = number
        self.requests = 0
        self.tokens = 0


class LocalLimits:
    """Counts in this worker's memory only. With `workers` of them a project gets its rates at most once over all."""

    def __init__(self, known: LastKnown, workers: int) -> None:
        self._known = known
        self._workers = workers
        self._minutes: dict[str, _Minute] = {}

    def admit(self, held: Held) -> Admission:
        """What is to be held, if Redis had been there; its name goes when it is admitted."""
        claim, limits = held.claim, held.terms.limits
        minute = self._minute(claim)
        refused = self._refused_by_rate(limits, claim, minute)
        if not refused and limits.hard_stop and self._is_spent(held.month, limits.monthly_budget_usd, claim.cost):
            refused = "month"
        if not refused and self._is_spent(held.session, limits.session_budget_usd, claim.cost):
            refused = "session"
        if refused:
            return Admission(refused, minute.requests, minute.tokens, None)
        minute.requests += 1
        minute.tokens += claim.tokens
        held.name = ""
        for scope in held.scopes():
            self._known.of(scope).spent += claim.cost
        spent = held.month is not None and self._known.of(held.month).spent >= held.terms.month_budget
        return Admission("", minute.requests, minute.tokens, held, spent)

    def settle(self, held: Held, tokens: int, cost: int) -> None:
        """What Redis admitted (`held.name`) before it went away stands in no figure of this worker yet."""
        minute = self._minutes.get(held.claim.project)
        if not held.name and minute is not None and minute.number == held.claim.minute:
            minute.tokens += tokens - held.claim.tokens
        for scope in held.scopes():
            self._known.of(scope).spent += cost if held.name else cost - held.claim.cost

    def forget(self) -> None:
        """Redis is back and counts again."""
        self._minutes.clear()

    def _minute(self, claim: Claim) -> _Minute:
        found = self._minutes.get(claim.project)
        if found is None or found.number != claim.minute:
            found = self._minutes[claim.project] = _Minute(claim.minute)
        return found

    def _refused_by_rate(self, limits: LimitSettings, claim: Claim, minute: _Minute) -> str:
        if limits.requests_per_minute is not None and minute.requests + 1 > self._share(limits.requests_per_minute):
            return "requests"
        if limits.tokens_per_minute is not None and minute.tokens + claim.tokens > self._share(
            limits.tokens_per_minute
        ):
            return "tokens"
        return ""

    def _share(self, limit: int) -> int:
        return -(-limit // self._workers)

    def _is_spent(self, scope: Scope | None, budget: Decimal | None, cost: int) -> bool:
        return scope is not None and budget is not None and self._known.of(scope).spent + cost > to_units(budget)
