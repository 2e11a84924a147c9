from __future__ import annotations

import numpy as np

from benchmarks.rollouts.counting import Flags, Floats, Integers, sums_before
from benchmarks.rollouts.values import MEAN_COST
from benchmarks.rollouts.worlds import Budget, RateLimit


class Spending:
    def __init__(self, budget: Budget, units: int) -> None:
        self._budget = budget
        self._limit = budget.requests * MEAN_COST
        self._spent: Floats = np.zeros(units)
        self._first = self._period = 0
        self._open: tuple[Integers, Integers, Floats] | None = None

    def refused(self, first: int, minute: Integers, unit: Integers, cost: Floats) -> Flags:
        self._first = first
        period = (first + minute) // self._budget.minutes
        carried = np.where(period == self._period, self._spent[unit], 0.0)
        # What a request would cost that is refused counts as well, and only comes after the budget was used up.
        before = carried + sums_before((period - period.min(initial=0)) * len(self._spent) + unit, cost)
        refused: Flags = before >= self._limit
        self._open = minute[~refused], unit[~refused], cost[~refused]
        return refused

    def settle(self, minutes: int) -> None:
        if self._open is None:
            return
        minute, unit, cost = self._open
        period = (self._first + minutes) // self._budget.minutes
        now = (minute < minutes) & ((self._first + minute) // self._budget.minutes == period)
        spent: Floats = np.bincount(unit[now], weights=cost[now], minlength=len(self._spent)).astype(float)
        if period == self._period:
            spent += self._spent
        self._spent = spent
        self._period, self._open = period, None


def limited(limit: RateLimit, minute: Integers, unit: Integers) -> Flags:
    units = int(unit.max(initial=0)) + 1
    above: Flags = sums_before(minute * units + unit, np.ones(len(unit))) >= limit.requests
    return above


def beyond_tokens(limit: float, minute: Integers, tokens: Floats) -> Flags:
    """Returns which requests would take the minute's tokens beyond the limit; later ones may still fit."""
    beyond = np.zeros(len(minute), dtype=bool)
    now, used = -1, 0.0
    for index, (number, wanted) in enumerate(zip(minute.tolist(), tokens.tolist(), strict=True)):
        if number != now:
            now, used = number, 0.0
        if used + wanted > limit:
            beyond[index] = True
        else:
            used += wanted
    return beyond
