from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import floor

SLICE_SECONDS = 30
SLICES = 10
WINDOW_SECONDS = SLICES * SLICE_SECONDS

# A slice counts latencies by bucket (numbers from 0), and outcomes and failures under negative numbers.
OUTCOMES = -1
FAILURES = -2

Counts = dict[int, int]


def slice_of(now: float) -> int:
    return floor(now / SLICE_SECONDS)


def current_slices(now: float) -> range:
    newest = slice_of(now)
    return range(newest - SLICES + 1, newest + 1)


def total(slices: Iterable[Mapping[int, int]]) -> Counts:
    found: Counts = {}
    for counts in slices:
        for field, count in counts.items():
            found[field] = found.get(field, 0) + count
    return found


class Window:
    """The slices of a target, which merge this worker's counts and those of the others.

    Counts only grow, and Redis answers every increment with the new count of all workers. So the larger of two figures
    for a field is the later one, and merging may happen in any order and more than once.
    """

    __slots__ = ("_known", "_unsent")

    def __init__(self) -> None:
        self._known: dict[int, Counts] = {}
        self._unsent: dict[int, Counts] = {}

    def note(self, now: float, fields: Iterable[int]) -> None:
        number = slice_of(now)
        counts = self._unsent.get(number)
        if counts is None:
            self._forget(now)
            counts = self._unsent[number] = {}
        for field in fields:
            counts[field] = counts.get(field, 0) + 1

    def totals(self, now: float) -> Counts:
        self._forget(now)
        return total((*self._known.values(), *self._unsent.values()))

    def take_unsent(self, now: float) -> dict[int, Counts]:
        self._forget(now)
        taken, self._unsent = self._unsent, {}
        for number, counts in taken.items():
            self._known[number] = total((self._known.get(number, {}), counts))
        return taken

    def merge(self, number: int, shared: Mapping[int, int]) -> bool:
        known = self._known.setdefault(number, {})
        later = {field: count for field, count in shared.items() if count > known.get(field, 0)}
        known.update(later)
        return bool(later)

    def _forget(self, now: float) -> None:
        current = current_slices(now)
        # A slice slightly in the future is kept, since another host's clock may be ahead of this one.
        kept = range(current.start, current.stop + SLICES)
        for slices in (self._known, self._unsent):
            for number in [number for number in slices if number not in kept]:
                del slices[number]
