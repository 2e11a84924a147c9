from __future__ import annotations

import numpy as np

from benchmarks.rollouts.counting import Flags, Floats, Integers
from benchmarks.rollouts.worlds import Questions

_KEPT_MINUTES = 60
_ZIPF = 1.05
_NEVER = -1_000_000
"""The minute of an answer that never was."""


class Cache:
    """Questions of a Zipf distribution, and the cache with the answers of some.

    `slow` and `failing` are the factors of each question's latency and of its chance to fail.
    """

    def __init__(self, questions: Questions, rng: np.random.Generator) -> None:
        popularity = 1.0 / np.arange(1, questions.number + 1, dtype=np.float64) ** _ZIPF
        shares: Floats = popularity / popularity.sum()
        self._cumulative = np.cumsum(shares)
        own: Floats = np.exp(questions.spread * rng.standard_normal(questions.number))
        self.slow = _with_mean_1(shares**questions.slower * own, shares)
        self.failing = _with_mean_1(shares**questions.failing, shares)
        self._answered_at: dict[tuple[bool, int], int] = {}
        self._first = 0
        self._open: tuple[list[int], list[bool], list[int], list[bool]] = ([], [], [], [])

    def drawn(self, rng: np.random.Generator, count: int) -> Integers:
        found: Integers = np.minimum(np.searchsorted(self._cumulative, rng.random(count)), len(self._cumulative) - 1)
        return found

    def hits(
        self, first: int, minute: Integers, target: Flags, question: Integers, answered: Flags
    ) -> tuple[Flags, Flags]:
        """Returns which requests their arm's cache answers, and which the other arm's cache could have answered.

        Requests are in order of time, minutes counted from `first`; answers of the others enter the cache where they
        are `answered`. Nothing is stored before `settle`.
        """
        self._first = first
        self._open = ((minute + first).tolist(), target.tolist(), question.tolist(), answered.tolist())
        own, other = self._run(dict(self._answered_at), self._open)
        return np.array(own, dtype=bool), np.array(other, dtype=bool)

    def warm(self, rng: np.random.Generator, rate: float, errors: float) -> None:
        number = rng.poisson(rate * _KEPT_MINUTES)
        minute, question = np.sort(rng.integers(0, _KEPT_MINUTES, number)), self.drawn(rng, number)
        answered = rng.random(number) >= errors * self.failing[question]
        self.hits(1 - _KEPT_MINUTES, minute, np.zeros(number, dtype=bool), question, answered)
        self.settle(_KEPT_MINUTES)

    def settle(self, minutes: int) -> None:
        minute, target, question, answered = self._open
        number = sum(one < self._first + minutes for one in minute)
        self._run(self._answered_at, (minute[:number], target[:number], question[:number], answered[:number]))
        self._open = ([], [], [], [])

    @staticmethod
    def _run(
        answered_at: dict[tuple[bool, int], int], requests: tuple[list[int], list[bool], list[int], list[bool]]
    ) -> tuple[list[bool], list[bool]]:
        own, other = [], []
        for minute, target, question, answered in zip(*requests, strict=True):
            key = (target, question)
            hit = minute - answered_at.get(key, _NEVER) < _KEPT_MINUTES
            other.append(minute - answered_at.get((not target, question), _NEVER) < _KEPT_MINUTES)
            if answered and not hit:
                answered_at[key] = minute
            own.append(hit)
        return own, other


def _with_mean_1(factors: Floats, shares: Floats) -> Floats:
    scaled: Floats = factors / (factors * shares).sum()
    return scaled
