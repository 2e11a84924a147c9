"""Sticky allocation: users differ in how much they ask and how often it fails, and keep their arm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.rollouts.counting import Flags, Floats, Integers
from benchmarks.rollouts.worlds import Users
from rollouts.evaluation.formula_2 import ClusterSums

_FIRST = 5
"""So many requests of a user count in the comparison of users."""


class Crowd:
    """The users: the bucket (0 to 100) that decides on their arm, how often their requests fail, and how much
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
        """Draws the users of so many requests, each by how much it asks."""
        found = np.searchsorted(self._cumulative, rng.random(count), side="right")
        who: Integers = np.minimum(found, self.number - 1)
        return who


@dataclass(frozen=True, slots=True)
class Valued:
    """Requests that have a value of a metric, in order of time: the minute within those drawn, the user, the arm, the
    value."""

    minute: Integers
    user: Integers
    target: Flags
    value: Floats

    def at(self, chosen: Integers | Flags) -> Valued:
        return Valued(self.minute[chosen], self.user[chosen], self.target[chosen], self.value[chosen])


@dataclass(frozen=True, slots=True)
class Look:
    """Of one metric: the users who count, with the sum of the values of their first five requests, and after each
    minute the sums over the users of the baseline and of the target."""

    complete: Valued
    baseline: Sequence[ClusterSums]
    target: Sequence[ClusterSums]


class _Sums:
    """Of one metric: of every user the requests and the sum of their values, of the stage's first five and of all in
    each arm."""

    def __init__(self, users: int) -> None:
        self.stage_requests, self.stage_values = np.zeros((2, users))
        self.requests, self.values = np.zeros((2, 2, users))
        self.clusters = np.zeros((2, 6))


@dataclass(frozen=True, slots=True)
class _Open:
    """What was looked at and may not happen: requests by user and time, with the number of the user's requests before
    in the stage, and by how much each raises the six sums of its arm."""

    requests: Valued
    rank: Floats
    steps: Floats


class Ledger:
    """What was seen of every user so far."""

    def __init__(self, buckets: Floats) -> None:
        self._buckets = buckets
        self._seen = np.zeros(len(buckets), dtype=bool)
        self._sums: dict[str, _Sums] = {}
        self._stage, self._weight, self._weight_before = 0, 0, 0
        self._open: dict[str, _Open] = {}
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

    def look(self, name: str, valued: Valued, minutes: int) -> Look:
        """At requests of so many minutes, none of which has happened yet."""
        sums = self._sums.setdefault(name, _Sums(len(self._buckets)))
        order, rank, before = _ranked(valued)
        requests = valued.at(order)
        arm, user, value = requests.target.astype(np.int64), requests.user, requests.value
        stage_rank = rank + sums.stage_requests[user]
        fifth = (stage_rank == _FIRST - 1) & (self._buckets[user] >= self._weight_before)
        complete = replace(requests.at(fifth), value=(sums.stage_values[user] + before + value)[fifth])
        steps = _steps(rank + sums.requests[arm, user], before + sums.values[arm, user], value)
        self._open[name] = _Open(requests, stage_rank, steps)
        baseline, target = (self._after(sums.clusters[one], requests, steps, arm == one, minutes) for one in (0, 1))
        return Look(complete, baseline, target)

    def settle(self, minutes: int) -> None:
        """What was looked at in the first so many minutes has happened; the rest has not."""
        if self._users is not None:
            minute, user = self._users
            self._seen[user[minute < minutes]] = True
        for name, one in self._open.items():
            sums, happened = self._sums[name], one.requests.minute < minutes
            early = one.requests.at(happened & (one.rank < _FIRST))
            sums.stage_values += self._by_user(early.user, early.value)
            sums.stage_requests += self._by_user(one.requests.user[happened])
            for arm in (0, 1):
                chosen = happened & (one.requests.target == bool(arm))
                part = one.requests.at(chosen)
                sums.requests[arm] += self._by_user(part.user)
                sums.values[arm] += self._by_user(part.user, part.value)
                sums.clusters[arm] += one.steps[:, chosen].sum(axis=1)
        self._open, self._users = {}, None

    def _by_user(self, user: Integers, values: Floats | None = None) -> Floats:
        found: Floats = np.bincount(user, weights=values, minlength=len(self._buckets)).astype(float)
        return found

    @staticmethod
    def _after(before: Floats, requests: Valued, steps: Floats, chosen: Flags, minutes: int) -> list[ClusterSums]:
        minute = requests.minute[chosen]
        by_minute = np.array([np.bincount(minute, weights=step[chosen], minlength=minutes) for step in steps])
        after = np.cumsum(by_minute, axis=1) + before[:, None]
        return [ClusterSums(*column) for column in after.T.tolist()]


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


def _steps(requests: Floats, total: Floats, value: Floats) -> Floats:
    """By how much each request raises the six sums of `ClusterSums`, a row for each sum, when its user had so many
    requests in the arm before, of so much in all."""
    return np.array(
        (
            np.ones(len(value)),
            2 * requests + 1,
            value,
            (2 * total + value) * value,
            requests * value + total + value,
            value * value,
        )
    )
