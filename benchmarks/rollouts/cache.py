"""A response cache for each arm: an answer is kept for an hour, and each version has answers of its own."""

from __future__ import annotations

import numpy as np

from benchmarks.rollouts.counting import Flags, Integers

_KEPT_MINUTES = 60
_ZIPF = 1.05


class Cache:
    """Questions of a Zipf distribution, and the cache that holds the answers of some of them."""

    def __init__(self, questions: int) -> None:
        shares = 1.0 / np.arange(1, questions + 1) ** _ZIPF
        self._cumulative = np.cumsum(shares) / shares.sum()
        self._answered_at: dict[tuple[bool, int], int] = {}
        self._first = 0
        self._open: tuple[list[int], list[bool], list[int], list[bool]] = ([], [], [], [])

    def hits(self, rng: np.random.Generator, first: int, minute: Integers, target: Flags, answered: Flags) -> Flags:
        """Returns which of these requests are answered from the cache. Requests are in order of time, their minutes
        counted from `first`; the answers of the others enter the cache where they are `answered`. Nothing is stored
        before `settle`."""
        question = np.searchsorted(self._cumulative, rng.random(len(minute)))
        self._first = first
        self._open = ((minute + first).tolist(), target.tolist(), question.tolist(), answered.tolist())
        return np.array(self._run(dict(self._answered_at), self._open), dtype=bool)

    def warm(self, rng: np.random.Generator, rate: float, errors: float) -> None:
        """Fills the cache with the baseline's hour before the rollout."""
        number = rng.poisson(rate * _KEPT_MINUTES)
        minute = np.sort(rng.integers(0, _KEPT_MINUTES, number))
        self.hits(rng, 1 - _KEPT_MINUTES, minute, np.zeros(number, dtype=bool), rng.random(number) >= errors)
        self.settle(_KEPT_MINUTES)

    def settle(self, minutes: int) -> None:
        """Stores the answers of the first `minutes` minutes, and discards those of the minutes that did not happen."""
        minute, target, question, answered = self._open
        number = sum(one < self._first + minutes for one in minute)
        self._run(self._answered_at, (minute[:number], target[:number], question[:number], answered[:number]))
        self._open = ([], [], [], [])

    @staticmethod
    def _run(
        answered_at: dict[tuple[bool, int], int], requests: tuple[list[int], list[bool], list[int], list[bool]]
    ) -> list[bool]:
        hits = []
        for minute, target, question, answered in zip(*requests, strict=True):
            key = (target, question)
            hit = minute - answered_at.get(key, -_KEPT_MINUTES) < _KEPT_MINUTES
            if answered and not hit:
                answered_at[key] = minute
            hits.append(hit)
        return hits
