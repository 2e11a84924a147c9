"""Bounds the number of label sets: a limited number of projects, providers and models, and one set for the rest.

Clients choose model names, so their number is unbounded, but the number of series must not be. New labels take a free
place; a place that was idle for a day goes to newer labels, and the old figures disappear, like those of a process that
ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import NamedTuple

OTHER = "other"

MAX_SETS = 400
MAX_OF_PROJECT = 100
MAX_REMAINDERS = 100
MAX_PROVIDERS = 40
MAX_CODES = 30
IDLE_SECONDS = 86_400


class UsageLabels(NamedTuple):
    project: str
    provider: str
    model: str

    @property
    def is_remainder(self) -> bool:
        return self.model == OTHER and self.provider == OTHER


REMAINDER = UsageLabels(OTHER, OTHER, OTHER)


class Places:
    def __init__(self, taken: Iterable[tuple[UsageLabels, int]] = ()) -> None:
        self._used_at: dict[UsageLabels, int] = dict(taken)
        self._sets = Counter(labels.project for labels in self._used_at if not labels.is_remainder)
        self._remainders = sum(1 for labels in self._used_at if labels.is_remainder)
        self._full_until = 0

    def place_of(self, labels: UsageLabels, now: int) -> tuple[UsageLabels, UsageLabels | None]:
        if labels not in self._used_at and labels.is_remainder:
            return self._use(self._remainder_of(labels.project), now), None
        given_up: UsageLabels | None = None
        if labels not in self._used_at:
            if self._sets.total() >= MAX_SETS or self._sets[labels.project] >= MAX_OF_PROJECT:
                given_up = self._vacated(labels.project, now)
                if given_up is None:
                    return self._use(self._remainder_of(labels.project), now), None
            self._sets[labels.project] += 1
        return self._use(labels, now), given_up

    def _use(self, labels: UsageLabels, now: int) -> UsageLabels:
        self._used_at[labels] = now
        return labels

    def _remainder_of(self, project: str) -> UsageLabels:
        own = UsageLabels(project, OTHER, OTHER)
        if own in self._used_at:
            return own
        if self._remainders >= MAX_REMAINDERS:
            return REMAINDER
        self._remainders += 1
        return own

    def _vacated(self, project: str, now: int) -> UsageLabels | None:
        """Frees and returns the labels that have been idle longest, if long enough. A project at its maximum of places
        gives up one of its own."""
        if now < self._full_until:
            return None
        own_only = self._sets[project] >= MAX_OF_PROJECT
        sets = [one for one in self._used_at if not one.is_remainder and (one.project == project or not own_only)]
        oldest = min(sets, key=lambda one: self._used_at[one])
        if now - self._used_at[oldest] < IDLE_SECONDS:
            # The search for an idle series is repeated once a minute, not for each record.
            self._full_until = now + 60
            return None
        del self._used_at[oldest]
        self._sets[oldest.project] -= 1
        return oldest


def bounded(known: Collection[str], name: str, max_names: int) -> str:
    return name if name in known or len(known) < max_names else OTHER
