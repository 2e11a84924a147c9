"""Sticky allocation: users differ in how much they ask and how often it fails, and keep their arm."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from benchmarks.rollouts.counting import Flags, Floats, Integers
from benchmarks.rollouts.worlds import Users
from rollouts.evaluation.formula_2 import ClusterSums

_FIRST = 5
"""So many requests of a user count in the comparison of users."""


class Crowd:
    """Who the users are: the bucket (0 to 100) that decides on their arm, how often their requests fail, and how much
    slower and dearer than others' they are, as logarithms in standard deviations."""

    def __init__(self, users: Users, errors: float, rng: np.random.Generator) -> None:
        self.number = users.number
        activity = rng.pareto(users.activity, users.number) + 1 if np.isfinite(users.activity) else np.ones(self.number)
        self._cumulative = np.cumsum(activity) / activity.sum()
        self.buckets = rng.random(users.number) * 100
        self.rates = np.full(users.number, errors)
        if users.icc:
            precision = 1 / users.icc - 1
            self.rates = rng.beta(errors * precision, (1 - errors) * precision, users.number)
        self.rates[rng.permutation(users.number)[: round(users.broken * users.number)]] = 1.0
        self.slower, self.dearer = rng.standard_normal((2, users.number))

    def drawn(self, rng: np.random.Generator, count: int) -> Integers:
        """Who sends so many requests."""
        found = np.searchsorted(self._cumulative, rng.random(count), side="right")
        who: Integers = np.minimum(found, self.number - 1)
        return who


@dataclass(slots=True)
class _Sums:
    """Of one metric: of every user the requests and the sum of their values, of the stage's first five and of all in
    the baseline."""

    stage_requests: Floats
    stage_values: Floats
    requests: Floats
    values: Floats
    clusters: Floats = field(default_factory=lambda: np.zeros(6))


@dataclass(frozen=True, slots=True)
class Valued:
    """Requests that have a value of a metric, in order of time: the minute within those drawn, the user, the arm, the
    value."""

    minute: Integers
    user: Integers
    target: Flags
    value: Floats


class Ledger:
    """What was seen of every user so far."""

    def __init__(self, buckets: Floats) -> None:
        self._buckets = buckets
        self._seen = np.zeros(len(buckets), dtype=bool)
        self._sums: dict[str, _Sums] = {}
        self._stage, self._weight, self._weight_before = 0, 0, 0
        self._open: dict[str, Valued] = {}
        self._users: tuple[Integers, Integers] | None = None

    def begin(self, stage: int, weight: int) -> None:
        """A new stage begins, unless it is still the same: who was in the target before does not count in it."""
        if stage == self._stage:
            return
        self._stage, self._weight_before, self._weight = stage, self._weight, weight
        for sums in self._sums.values():
            sums.stage_requests[:] = sums.stage_values[:] = 0

    def new_users(self, minute: Integers, user: Integers) -> Integers:
        """The positions of the requests that are their users' first of the rollout."""
        self._users = (minute, user)
        _, first = np.unique(user, return_index=True)
        found: Integers = first[~self._seen[user[first]]]
        return found

    def look(self, name: str, valued: Valued, minutes: int) -> tuple[Valued, list[ClusterSums]]:
        """The users who count, with the sum of the values of their first five requests, and the sums over the
        baseline's users after each of so many minutes."""
        self._open[name] = valued
        sums = self._of(name)
        return self._complete(sums, valued), self._clustered(sums, valued, minutes)

    def settle(self, minutes: int) -> None:
        """What was looked at in the first so many minutes has happened; the rest has not."""
        if self._users is not None:
            minute, user = self._users
            self._seen[user[minute < minutes]] = True
        for name, valued in self._open.items():
            sums, part = self._sums[name], _part(valued, valued.minute < minutes)
            order, rank, _ = _ranked(part)
            early = order[rank + sums.stage_requests[part.user[order]] < _FIRST]
            sums.stage_values += self._by_user(part.user[early], part.value[early])
            sums.stage_requests += self._by_user(part.user)
            theirs = _part(part, ~part.target)
            sums.clusters = _cluster_steps(sums, theirs).sum(axis=1) + sums.clusters
            sums.requests += self._by_user(theirs.user)
            sums.values += self._by_user(theirs.user, theirs.value)
        self._open, self._users = {}, None

    def _of(self, name: str) -> _Sums:
        if name not in self._sums:
            zeros = (np.zeros(len(self._buckets)) for _ in range(4))
            self._sums[name] = _Sums(*zeros)
        return self._sums[name]

    def _by_user(self, user: Integers, values: Floats | None = None) -> Floats:
        found: Floats = np.bincount(user, weights=values, minlength=len(self._buckets)).astype(float)
        return found

    def _complete(self, sums: _Sums, valued: Valued) -> Valued:
        order, rank, before = _ranked(valued)
        user = valued.user[order]
        fifth = (rank + sums.stage_requests[user] == _FIRST - 1) & (self._buckets[user] >= self._weight_before)
        last = order[fifth]
        total = (sums.stage_values[user] + before + valued.value[order])[fifth]
        return Valued(valued.minute[last], valued.user[last], valued.target[last], total)

    def _clustered(self, sums: _Sums, valued: Valued, minutes: int) -> list[ClusterSums]:
        theirs = _part(valued, ~valued.target)
        steps = _cluster_steps(sums, theirs)
        by_minute = np.array([np.bincount(theirs.minute, weights=step, minlength=minutes) for step in steps])
        after = np.cumsum(by_minute, axis=1) + sums.clusters[:, None]
        return [ClusterSums(*column) for column in after.T.tolist()]


def _part(valued: Valued, chosen: Flags) -> Valued:
    return Valued(valued.minute[chosen], valued.user[chosen], valued.target[chosen], valued.value[chosen])


def _ranked(valued: Valued) -> tuple[Integers, Integers, Floats]:
    """The order by user and time; in this order how many requests of the user, and what sum of values, came before."""
    order = np.argsort(valued.user, kind="stable")
    if not len(order):
        return order, order, np.zeros(0)
    user, value = valued.user[order], valued.value[order]
    begins = np.flatnonzero(np.concatenate(([True], user[1:] != user[:-1])))
    lengths = np.diff(np.concatenate((begins, [len(user)])))
    rank = np.arange(len(user)) - np.repeat(begins, lengths)
    before = np.cumsum(value) - value
    return order, rank, before - np.repeat(before[begins], lengths)


def _cluster_steps(sums: _Sums, valued: Valued) -> Floats:
    """By how much each request raises the six sums of `ClusterSums`, a row for each sum."""
    order, rank, before = _ranked(valued)
    value, user = valued.value[order], valued.user[order]
    requests, total = rank + sums.requests[user], before + sums.values[user]
    steps = np.empty((6, len(order)))
    steps[:, order] = (
        np.ones(len(order)),
        2 * requests + 1,
        value,
        (2 * total + value) * value,
        requests * value + total + value,
        value * value,
    )
    return steps
