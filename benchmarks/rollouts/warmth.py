"""The prompt caches of a provider, which keep an arm's prompt for some minutes after each request."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.rollouts.counting import Flags, Floats, Integers

COLD_SLOWER, COLD_DEARER = 1.8, 3.0
_KEPT_MINUTES = 5.0


class Prompts:
    def __init__(self) -> None:
        self._latest = [-math.inf, 0.0]
        """The minutes of the latest requests, of the target's first of all; the baseline has been served until now."""
        self._open: tuple[Floats, Flags] | None = None
        self._first = 0

    def cold(self, rng: np.random.Generator, first: int, minute: Integers, target: Flags) -> Flags:
        """Returns which requests find their arm's prompt gone. Nothing is kept before `settle`."""
        time = np.sort(first + minute + rng.random(len(minute)))
        self._open, self._first = (time, target), first
        cold = np.zeros(len(minute), dtype=bool)
        for arm, latest in zip((True, False), self._latest, strict=True):
            mine = target == arm
            cold[mine] = np.diff(time[mine], prepend=latest) > _KEPT_MINUTES
        return cold

    def settle(self, minutes: int) -> None:
        if self._open is None:
            return
        time, target = self._open
        happened = time < self._first + minutes
        for index, arm in enumerate((True, False)):
            self._latest[index] = time[happened & (target == arm)].max(initial=self._latest[index])
        self._open = None
