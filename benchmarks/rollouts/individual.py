"""Traffic drawn request by request: users, caches, faults, retries, and clients who leave."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from typing_extensions import override

from benchmarks.rollouts.cache import Cache
from benchmarks.rollouts.counting import Flags, Floats, Integers
from benchmarks.rollouts.crowd import Crowd
from benchmarks.rollouts.requests import Requests
from benchmarks.rollouts.tally import Tally
from benchmarks.rollouts.traffic import Traffic
from benchmarks.rollouts.values import Values
from benchmarks.rollouts.weather import Conditions, error_rates, odds_ratio
from benchmarks.rollouts.worlds import Fault, World
from rollouts.evaluation import ArmCounts, MinuteCounts
from rollouts.evaluation.statistics.grid import Histogram

_FAILS_AGAIN = 0.5
"""The smallest chance that a failed request fails again."""
_HANGS_MINUTES = 3
_REPORTED_MINUTES = 1


class Individual(Traffic):
    """Traffic of single requests under random or sticky allocation."""

    def __init__(self, world: World, rng: np.random.Generator) -> None:
        super().__init__(world, rng)
        self._crowd = Crowd(world.users, world.errors, rng) if world.users else None
        self._cache = Cache(world.questions) if world.questions else None
        if self._cache:
            self._cache.warm(rng, world.rate, world.errors)
        values = Values(world, self._crowd, rng)
        self._usual = values.reference()
        self._tally = Tally(world, values, self._usual, self._crowd)

    @override
    def reference(self) -> tuple[Histogram, Histogram]:
        return self._usual

    @override
    def settle(self, minutes: int) -> None:
        self._tally.settle(minutes)
        if self._cache:
            self._cache.settle(minutes)

    @override
    def draw(self, first: int, stage: int, weight: int, conditions: Conditions) -> Sequence[MinuteCounts]:
        arms = self._tally.arms(self.requests(first, stage, weight, conditions), stage, weight, conditions)
        return [
            MinuteCounts(first + index, stage, weight, target, baseline, *clusters)
            for index, (target, baseline, clusters) in enumerate(arms)
        ]

    def requests(self, first: int, stage: int, weight: int, conditions: Conditions) -> Requests:
        """Returns the requests that arrive under these conditions."""
        world, rng = self.world, self.rng
        minute, user, target, failed = self._tried(stage, weight, conditions)
        if world.lost and stage >= world.harm_from:
            kept = ~target | (rng.random(len(minute)) >= world.lost)
            minute, user, target, failed = minute[kept], user[kept], target[kept], failed[kept]
        nothing = np.zeros(len(minute), dtype=bool)
        broken = nothing
        if world.fault and stage >= world.harm_from:
            broken = target & (rng.random(len(minute)) < world.fault_share)
        left = rng.random(len(minute)) < world.cancelled if world.cancelled else nothing
        early = left & (rng.random(len(minute)) < 0.5) if world.cancelled else nothing
        hit = self._cache.hits(rng, first, minute, target, ~(failed | broken | left)) if self._cache else nothing
        return Requests(minute, user, target, hit, failed & ~broken & ~left, broken, left & ~broken, early & ~broken)

    def _tried(self, stage: int, weight: int, conditions: Conditions) -> tuple[Integers, Integers, Flags, Flags]:
        """Returns minutes, users, arms and failures, with the repeated requests."""
        world, rng = self.world, self.rng
        total = rng.poisson(world.rate * conditions.load)
        minute = np.repeat(np.arange(len(total)), total)
        user = self._crowd.drawn(rng, len(minute)) if self._crowd else np.zeros(len(minute), dtype=np.int64)
        tries, min_chance = [], 0.0
        for _ in range(1 + world.retries):
            target = self._arms(user, weight)
            chance = np.maximum(self._chances(minute, user, target, stage, conditions), min_chance)
            failed = rng.random(len(minute)) < chance
            tries.append((minute, user, target, failed))
            minute, user, min_chance = minute[failed], user[failed], _FAILS_AGAIN
        if not world.retries:
            return tries[0]
        columns = [np.concatenate(parts) for parts in zip(*tries, strict=True)]
        order = np.argsort(columns[0], kind="stable")
        minute, user, target, failed = (column[order] for column in columns)
        return minute, user, target, failed

    def _arms(self, user: Integers, weight: int) -> Flags:
        arms: Flags
        arms = self._crowd.buckets[user] < weight if self._crowd else self.rng.random(len(user)) < weight / 100
        return arms

    def _chances(self, minute: Integers, user: Integers, target: Flags, stage: int, conditions: Conditions) -> Floats:
        """Returns the chance that each request fails."""
        odds, failing = conditions.odds[minute], conditions.failing[minute]
        rate, base = self.target_rate(stage), self.world.errors
        if self._crowd:
            worse = odds_ratio(base, rate)
            return error_rates(self._crowd.rates[user], np.where(target, worse, 1.0) * odds, failing)
        return error_rates(np.where(target, rate, base), odds, failing)


class Hanging(Individual):
    """Traffic in which some of the target's requests hang for 200 seconds and fail then.

    With `open_requests_reported` they count as unanswered once they have been open for a minute, and as errors when
    they fail; without it, as both when they fail. A row that comes after a change of stage belongs to its own stage.
    """

    def __init__(self, world: World, rng: np.random.Generator) -> None:
        super().__init__(world, rng)
        self._hanging = np.zeros(0, dtype=np.int64)
        self._late: dict[int, dict[tuple[int, int], ArmCounts]] = defaultdict(dict)

    @override
    def requests(self, first: int, stage: int, weight: int, conditions: Conditions) -> Requests:
        drawn = super().requests(first, stage, weight, conditions)
        self._hanging = np.bincount(drawn.minute[drawn.broken], minlength=len(conditions.load))
        return drawn.where(~drawn.broken)

    @override
    def minute(self, number: int, stage: int, weight: int) -> list[MinuteCounts]:
        [now] = super().minute(number, stage, weight)
        hanging = int(self._hanging[number - self.first])
        if hanging:
            self._let_hang(number, (stage, weight), hanging)
        late = self._late.pop(number, {})
        mine = late.pop((stage, weight), None)
        earlier = [MinuteCounts(number, *key, arm, ArmCounts()) for key, arm in sorted(late.items())]
        return [*earlier, now if mine is None else replace(now, target=_together(now.target, mine))]

    def _let_hang(self, number: int, key: tuple[int, int], hanging: int) -> None:
        reported = self.world.open_requests_reported
        reason = (Fault.HANGING if reported else Fault.FAILED).value
        open_ones = ArmCounts(requests=hanging, unanswered=hanging, reasons={reason: hanging})
        failed = ArmCounts(judged=hanging, errors=hanging, units=hanging)
        for minutes, arm in ((_REPORTED_MINUTES if reported else _HANGS_MINUTES, open_ones), (_HANGS_MINUTES, failed)):
            late = self._late[number + minutes]
            late[key] = _together(late.get(key, ArmCounts()), arm)


def _together(one: ArmCounts, other: ArmCounts) -> ArmCounts:
    reasons = {key: one.reasons.get(key, 0) + other.reasons.get(key, 0) for key in {**one.reasons, **other.reasons}}
    return replace(
        one,
        requests=one.requests + other.requests,
        unanswered=one.unanswered + other.unanswered,
        judged=one.judged + other.judged,
        errors=one.errors + other.errors,
        units=one.units + other.units,
        reasons=reasons,
    )
