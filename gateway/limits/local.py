"""Limits within one worker while Redis is away: its share of the rates, and the last known spend."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from gateway.limits.claims import Admission, Claim, Reservation
from gateway.limits.keys import Scope
from gateway.limits.units import to_units
from gateway.project_settings.settings import LimitSettings

if TYPE_CHECKING:
    from decimal import Decimal

_MAX_SCOPES = 20_000


class KnownSpend:
    """The spend of one scope in units. `doubted` is the time since which the spend is in doubt, in Redis's notation;
    empty for a certain spend."""

    __slots__ = ("doubted", "spent")

    def __init__(self) -> None:
        self.spent = 0
        self.doubted = b""


class KnownSpends:
    """The known spends of the scopes that were used most recently."""

    def __init__(self) -> None:
        self._by_key: OrderedDict[str, KnownSpend] = OrderedDict()

    def of(self, scope: Scope) -> KnownSpend:
        by_key = self._by_key
        found = by_key.get(scope.spend)
        if found is None:
            found = by_key[scope.spend] = KnownSpend()
            if len(by_key) > _MAX_SCOPES:
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
    """Counts in this worker's memory only. `workers` of them together admit at most the project's rates."""

    def __init__(self, known: KnownSpends, workers: int) -> None:
        self._known = known
        self._workers = workers
        self._minutes: dict[str, _Minute] = {}

    def admit(self, reservation: Reservation) -> Admission:
        """Admits a request with the reservation that Redis would have held; the name is cleared on admission."""
        claim, limits = reservation.claim, reservation.minute_limits.limits
        minute = self._minute(claim)
        refused = self._refused_by_rate(limits, claim, minute)
        if (
            not refused
            and limits.hard_stop
            and self._is_spent(reservation.month, limits.monthly_budget_usd, claim.cost)
        ):
            refused = "month"
        if not refused and self._is_spent(reservation.session, limits.session_budget_usd, claim.cost):
            refused = "session"
        if refused:
            return Admission(refused, minute.requests, minute.tokens, None)
        minute.requests += 1
        minute.tokens += claim.tokens
        reservation.name = ""
        for scope in reservation.scopes():
            self._known.of(scope).spent += claim.cost
        spent = (
            reservation.month is not None
            and self._known.of(reservation.month).spent >= reservation.minute_limits.month_budget
        )
        return Admission("", minute.requests, minute.tokens, reservation, spent)

    def settle(self, reservation: Reservation, tokens: int, cost: int) -> None:
        """Settles a request. A reservation with a name was admitted by Redis, and is in no figure of this worker
        yet."""
        minute = self._minutes.get(reservation.claim.project)
        if not reservation.name and minute is not None and minute.number == reservation.claim.minute:
            minute.tokens += tokens - reservation.claim.tokens
        for scope in reservation.scopes():
            self._known.of(scope).spent += cost if reservation.name else cost - reservation.claim.cost

    def forget(self) -> None:
        """Drops the minute's counts, because Redis counts again."""
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
