from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.rollouts.counting import Flags, Floats, Integers
from benchmarks.rollouts.worlds import Users
from rollouts.evaluation import ClusterSums, MinuteUsers

HEAVY_WEIGHT = 10
"""The weight in percent at which the heavy user is in the target."""
HEAVY_BREAKS = (100, 115)
"""The minute from which on the heavy user's requests fail, and the first in which they do not."""
_FIRST = 5
"""The number of a user's requests that count in the comparison of users."""


class Crowd:
    """The users: the bucket (0 to 100) that decides their arm, their failure rate, and their own latency and cost as
    logarithms in standard deviations."""

    def __init__(self, users: Users, errors: float, rng: np.random.Generator) -> None:
        self.number = users.number
        activity = rng.pareto(users.activity, users.number) + 1 if np.isfinite(users.activity) else np.ones(self.number)
        if users.heavy:
            share = rng.uniform(*users.heavy)
            activity[0] = share / (1 - share) * activity[1:].sum()
        self._cumulative = np.cumsum(activity) / activity.sum()
        self.buckets = rng.random(users.number) * 100
        self._breaks = users.heavy is not None
        if self._breaks:
            self.buckets[0] *= HEAVY_WEIGHT / 100
        self.rates = np.full(users.number, errors)
        if users.icc:
            precision = 1 / users.icc - 1
            self.rates = rng.beta(errors * precision, (1 - errors) * precision, users.number)
        self.rates[rng.permutation(users.number)[: round(users.broken * users.number)]] = 1.0
        self.slower, self.dearer = rng.standard_normal((2, users.number))

    def broken(self, user: Integers, minute: Integers) -> Flags:
        begins, ends = HEAVY_BREAKS
        broken: Flags = (user == 0) & (minute >= begins) & (minute < ends) & self._breaks
        return broken

    def drawn(self, rng: np.random.Generator, count: int) -> Integers:
        found = np.searchsorted(self._cumulative, rng.random(count), side="right")
        who: Integers = np.minimum(found, self.number - 1)
        return who


@dataclass(frozen=True, slots=True)
class Valued:
    """Requests with a value of a metric, in order of time: the minute within those drawn, user, arm, value."""

    minute: Integers
    user: Integers
    target: Flags
    value: Floats

    def at(self, chosen: Integers | Flags) -> Valued:
        return Valued(self.minute[chosen], self.user[chosen], self.target[chosen], self.value[chosen])


@dataclass(frozen=True, slots=True)
class Look:
    """The users of one metric: those who count, with the sum of their first five requests' values, and the sums over
    the users of baseline and target after each minute."""

    complete: Valued
    baseline: Sequence[ClusterSums]
    target: Sequence[ClusterSums]


def by_minute(valued: Valued, minutes: int, *, is_mean: bool) -> list[MinuteUsers]:
    cells = 2 * valued.minute + valued.target
    width = int(valued.user.max(initial=0)) + 1
    keys, places = np.unique(cells * width + valued.user, return_inverse=True)
    cell, user = keys // width, keys % width
    number = np.bincount(places, minlength=len(keys))
    total, squares = (np.bincount(places, weights=valued.value**power, minlength=len(keys)) for power in (1, 2))
    by_user = (number, number**2, total, total**2, total * number, squares)
    sums = np.array([np.bincount(cell, weights=one, minlength=2 * minutes) for one in by_user])
    events: list[dict[int, int]] = [{} for _ in range(2 * minutes)]
    bad: Flags = np.zeros(len(total), dtype=bool) if is_mean else total > 0
    for where, who, count in zip(cell[bad].tolist(), user[bad].tolist(), total[bad].tolist(), strict=True):
        events[where][who] = int(count)
    return [MinuteUsers(ClusterSums(*column), one) for column, one in zip(sums.T.tolist(), events, strict=True)]


class _Sums:
    """Every user's requests and the sum of their values for one metric: of the stage's first five, of all in each arm,
    and, as `before`, of all in each arm before the stage."""

    def __init__(self, users: int) -> None:
        self.stage_requests, self.stage_values = np.zeros((2, users))
        self.requests, self.values = np.zeros((2, 2, users))
        self.before = np.zeros((2, 2, users))
        self.clusters = np.zeros((2, 6))


@dataclass(frozen=True, slots=True)
class _Open:
    """Requests that were drawn and may not happen: by user and time, with the user's earlier requests in the stage, and
    the amount by which each raises the six sums of its arm."""

    requests: Valued
    rank: Floats
    steps: Floats


class Ledger:
    def __init__(self, buckets: Floats) -> None:
        self._buckets = buckets
        self._seen = np.zeros(len(buckets), dtype=bool)
        self._sums: dict[str, _Sums] = {}
        self._stage, self._weight, self._weight_before = 0, 0, 0
        self._open: dict[str, _Open] = {}
        self._users: tuple[Integers, Integers] | None = None

    def begin(self, stage: int, weight: int) -> None:
        if stage == self._stage:
            return
        self._stage, self._weight_before, self._weight = stage, self._weight, weight
        for sums in self._sums.values():
            sums.stage_requests[:] = sums.stage_values[:] = 0
            sums.before = np.array((sums.requests, sums.values))

    def new_users(self, minute: Integers, user: Integers) -> Integers:
        self._users = (minute, user)
        _, first = np.unique(user, return_index=True)
        found: Integers = first[~self._seen[user[first]]]
        return found

    def look(self, name: str, valued: Valued, minutes: int) -> Look:
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

    def means_in_stage(self, name: str, *, target: bool, from_weight: int, least: int) -> Floats:
        """Returns the mean value of each of an arm's users with a bucket from this weight on and so many requests in
        the stage, of what is settled."""
        if name not in self._sums:
            return np.zeros(0)
        sums, arm = self._sums[name], int(target)
        requests, values = sums.requests[arm] - sums.before[0, arm], sums.values[arm] - sums.before[1, arm]
        chosen = (requests >= least) & (self._buckets >= from_weight)
        found: Floats = values[chosen] / requests[chosen]
        return found

    def settle(self, minutes: int) -> None:
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
    """Returns the amount by which each request raises the six sums of `ClusterSums`, one row per sum, given its user's
    earlier requests in the arm and their sum."""
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
