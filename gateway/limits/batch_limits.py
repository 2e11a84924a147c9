from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gateway.limits.keys import Scope
from gateway.limits.local import KnownSpend
from gateway.limits.minute_limits import AppliedLimits
from gateway.limits.terms import Budget, Counter, Places


class BatchLimits:
    __slots__ = (
        "_admitting",
        "_budgets",
        "_counters",
        "_known_of",
        "_number_of",
        "_numbers",
        "_places",
        "_subjects",
        "spends",
    )

    def __init__(self, known_of: Callable[[Scope], KnownSpend]) -> None:
        self._known_of = known_of
        self._numbers: dict[AppliedLimits, int] = {}
        self._admitting: dict[AppliedLimits, int] = {}
        self._subjects: list[tuple[list[int], list[int], list[int], list[int]]] = []
        self._number_of: dict[str, int] = {}
        self._counters: list[Counter] = []
        self._places: list[Places] = []
        self._budgets: list[Budget] = []
        self.spends: list[tuple[Scope, KnownSpend]] = []

    def of_settlement(self, applied: AppliedLimits) -> int:
        return self._numbers.get(applied) or self._add(applied)

    def of_admission(self, applied: AppliedLimits) -> int:
        """Returns the subject's number. Its limits replace those of a settlement, which may be older than a change."""
        found = self._admitting.get(applied)
        if found is None:
            found = self._admitting[applied] = self.of_settlement(applied)
            if len(self._subjects) == 1:
                return found
            for counter in applied.counters:
                self._counters[self._number_of[counter.requests] - 1] = counter
            for places in applied.places:
                self._places[self._number_of[places.key] - 1] = places
            for budget in applied.budgets:
                self._budgets[self._number_of[budget.scope.spend] - 1] = budget
        return found

    def note_near(self, near: Sequence[int]) -> None:
        for applied, number in self._admitting.items():
            applied.is_near = number in near

    def known_of(self, scope: Scope) -> KnownSpend:
        return self.spends[self._number_of[scope.spend] - 1][1]

    @property
    def key_count(self) -> int:
        return 2 * len(self._counters) + len(self._places) + 2 * len(self._budgets)

    def packed(self) -> tuple[list[bytes], tuple[Any, ...]]:
        keys = [counter.packed for counter in self._counters]
        keys += [places.packed for places in self._places]
        keys += [budget.scope.packed for budget in self._budgets]
        budgets = [
            (*budget.wire, float(known.spent)) for budget, (_, known) in zip(self._budgets, self.spends, strict=True)
        ]
        counters, places = [counter.wire for counter in self._counters], [place.wire for place in self._places]
        return keys, (counters, places, budgets, self._subjects)

    def _add(self, applied: AppliedLimits) -> int:
        if not self._subjects:
            return self._begin(applied)
        counters = [self._number(counter.requests, counter, self._counters) for counter in applied.counters]
        of_tokens = [self._number_of[counter.requests] for counter in applied.token_counters]
        places = [self._number(place.key, place, self._places) for place in applied.places]
        budgets = [self._number_budget(budget) for budget in applied.budgets]
        self._subjects.append((counters, of_tokens, places, budgets))
        number = self._numbers[applied] = len(self._subjects)
        return number

    def _begin(self, applied: AppliedLimits) -> int:
        self._counters, self._places = list(applied.counters), list(applied.places)
        self._budgets = list(applied.budgets)
        self.spends = [(budget.scope, self._known_of(budget.scope)) for budget in applied.budgets]
        self._number_of = applied.numbers.copy()
        self._subjects.append(applied.subject)
        self._numbers[applied] = 1
        return 1

    def _number_budget(self, budget: Budget) -> int:
        number = self._number(budget.scope.spend, budget, self._budgets)
        if number > len(self.spends):
            self.spends.append((budget.scope, self._known_of(budget.scope)))
        return number

    def _number(self, name: str, limit: Any, limits: list[Any]) -> int:
        found = self._number_of.get(name)
        if found is None:
            limits.append(limit)
            found = self._number_of[name] = len(limits)
        return found
