"""Limits within one worker while Redis is down: its share of rates and places, and the last known spend."""

from __future__ import annotations

from collections import OrderedDict
from zlib import crc32

from gateway.limits.claims import Admission, Claim, Reservation, answer_to
from gateway.limits.keys import Scope
from gateway.limits.minute_limits import AppliedLimits
from gateway.limits.terms import Counter

_MAX_SCOPES = 20_000


class KnownSpend:
    """The spend of one scope in units. It is in doubt since `doubted`, a time in Redis's notation or empty."""

    __slots__ = ("doubted", "spent")

    def __init__(self) -> None:
        self.spent = 0
        self.doubted = b""


class KnownSpends:
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
    """Counts in this worker's memory only. All workers of the installation together admit what the limits allow."""

    def __init__(self, known: KnownSpends, workers: int) -> None:
        self._known = known
        self._workers, self._number = workers, 0
        self._minutes: dict[str, _Minute] = {}
        # The number of open requests that this worker has admitted, by the key of their places.
        self._open: dict[str, int] = {}

    def share_among(self, workers: int, number: int) -> None:
        """This worker is `number`, counted from 0, of the `workers` of all hosts."""
        self._workers, self._number = workers, number

    def admit(self, reservation: Reservation) -> Admission:
        claim, applied = reservation.claim, reservation.applied
        minutes = [self._minute(counter) for counter in applied.counters]
        refused = self._refused_by_rate(applied, claim, minutes) or self._refused_by_budget(applied, claim.cost)
        if refused:
            return answer_to(reservation, refused, _counts(minutes))
        for minute in minutes:
            minute.requests += 1
            minute.tokens += claim.tokens
        for places in applied.places:
            self._open[places.key] = self._open.get(places.key, 0) + 1
        reservation.name = ""
        for scope in reservation.scopes():
            self._known.of(scope).spent += claim.cost
        month = applied.month
        spent = month is not None and self._known.of(month.scope).spent >= month.units
        return answer_to(reservation, "", _counts(minutes), month_is_spent=spent)

    def settle(self, reservation: Reservation, tokens: int, cost: int) -> None:
        """A reservation with a name was admitted by Redis, and is in no count of this worker yet."""
        if not reservation.name:
            self._give_back(reservation, tokens)
        for scope in reservation.scopes():
            self._known.of(scope).spent += cost if reservation.name else cost - reservation.claim.cost

    def forget(self) -> None:
        self._minutes.clear()

    def _give_back(self, reservation: Reservation, tokens: int) -> None:
        claim = reservation.claim
        for counter in reservation.applied.counters:
            minute = self._minutes.get(counter.holder)
            if minute is not None and minute.number == claim.minute:
                minute.tokens += tokens - claim.tokens
        for places in reservation.applied.places:
            left = self._open.pop(places.key, 0) - 1
            if left > 0:
                self._open[places.key] = left

    def _minute(self, counter: Counter) -> _Minute:
        found = self._minutes.get(counter.holder)
        if found is None or found.number != counter.minute:
            if len(self._minutes) >= _MAX_SCOPES:
                self._minutes.clear()
            found = self._minutes[counter.holder] = _Minute(counter.minute)
        return found

    def _refused_by_rate(self, applied: AppliedLimits, claim: Claim, minutes: list[_Minute]) -> str:
        for counter, minute in zip(applied.counters, minutes, strict=True):
            name, requests, tokens = counter.wire[0], counter.requests_limit, counter.tokens_limit
            if requests is not None and minute.requests + 1 > self._share(requests, counter.holder, claim):
                return f"{name}requests"
            if tokens is not None and minute.tokens + claim.tokens > self._share(tokens, counter.holder, claim):
                return f"{name}tokens"
        for places in applied.places:
            if self._open.get(places.key, 0) + 1 > self._share(places.limit, places.key, claim):
                return places.wire[0]
        return ""

    def _refused_by_budget(self, applied: AppliedLimits, cost: int) -> str:
        for budget in applied.budgets:
            left = budget.units - self._known.of(budget.scope).spent
            if budget.refuses and cost > left:
                return f"{budget.name}|{max(left, 0)}"
        return ""

    def _share(self, limit: int, holder: str, claim: Claim) -> int:
        """The shares of all workers add up to the limit. What its division leaves over goes to other workers each
        minute, so that a limit below their number closes none of them for good."""
        turn = self._number + crc32(holder.encode()) + claim.minute
        return (limit + turn % self._workers) // self._workers


def _counts(minutes: list[_Minute]) -> list[int]:
    return [count for minute in minutes for count in (minute.requests, minute.tokens)]
