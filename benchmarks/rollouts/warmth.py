"""The prompt caches of a provider, which keep an arm's prompt for some minutes after each request."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.rollouts.counting import Flags, Floats, Integers

COLD_SLOWER, COLD_DEARER = 1.8, 3.0
_KEPT_MINUTES = 5.0


class Prompts:
    def __init__(self, machines: int) -> None:
        self._machines = machines
        self._latest = np.repeat([-math.inf, 0.0], machines)
        """The minutes of the latest requests by arm and machine, the target's first; the baseline has been served until
        now."""
        self._open: tuple[Floats, Integers] | None = None
        self._first = 0

    def cold(self, rng: np.random.Generator, first: int, minute: Integers, target: Flags) -> Flags:
        """Returns which requests find their arm's prompt gone. Nothing is kept before `settle`."""
        time = np.sort(first + minute + rng.random(len(minute)))
        machine = rng.integers(self._machines, size=len(minute)) if self._machines > 1 else 0
        place = (np.where(target, 0, self._machines) + machine).astype(np.int64)
        self._open, self._first = (time, place), first
        cold = np.zeros(len(minute), dtype=bool)
        for number, latest in enumerate(self._latest):
            mine = place == number
            cold[mine] = np.diff(time[mine], prepend=latest) > _KEPT_MINUTES
        return cold

    def settle(self, minutes: int) -> None:
        if self._open is None:
            return
        time, place = self._open
        happened = time < self._first + minutes
        np.maximum.at(self._latest, place[happened], time[happened])
        self._open = None
