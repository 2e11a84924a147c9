from __future__ import annotations

import math

import numpy as np

from benchmarks.rollouts.counting import Integers
from benchmarks.rollouts.crowd import Crowd
from benchmarks.rollouts.worlds import Sessions, Users

_MAX_MINUTES = 2 * 1440
"""The length of the longest rollout of sessions, with the time before it."""


class SessionCrowd(Crowd):
    """Sessions, the units in place of users, differ only in when they are open."""

    def __init__(self, sessions: Sessions, errors: float, rng: np.random.Generator) -> None:
        self._sessions = sessions
        self._begun = rng.integers(0, sessions.minutes, sessions.open)
        self._followers = math.ceil(_MAX_MINUTES / sessions.minutes)
        super().__init__(Users(sessions.open * self._followers, activity=math.inf), errors, rng)

    def at(self, rng: np.random.Generator, minute: Integers) -> Integers:
        place = rng.integers(0, self._sessions.open, len(minute))
        follower = (minute + self._begun[place]) // self._sessions.minutes % self._followers
        session: Integers = place + self._sessions.open * follower
        return session
