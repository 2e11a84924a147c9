"""Made-up traffic for the first formula of rollouts: what it would be told minute by minute, with the truth known."""

from __future__ import annotations

import bisect
import math
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from itertools import accumulate
from typing import Protocol

from rollouts.evaluation import ArmCounts, ClusterSums, Metric, MinuteCounts
from rollouts.evaluation.grid import value_of

_DAY = 1440
_MEDIAN_MS, _LATENCY_SPREAD = 800.0, 1.0
_MEDIAN_COST, _COST_SPREAD = 5_000_000.0, 0.8  # 10^-10 US dollars: half a thousandth of a dollar
_SPELL_MINUTES, _MINUTES_BETWEEN_SPELLS = 15, 120
_FAILING_SPELL_RATE, _SLOW_SPELL_FACTOR = 0.4, 3.0
_REFERENCE_VALUES = 5000


@dataclass(frozen=True, slots=True)
class World:
    """The truth of a rollout. `rate` is requests per minute over the day; factors compare the target with the baseline.

    `spells`: the provider fails or is slow for 15 minutes at a time, for both arms. `values`: latencies and costs are
    made as well. `users` above 0: sticky allocation of so many users with heavy-tailed activity, whose error rates
    have the intraclass correlation `icc`; without `clustering` the evaluation is not told of it. `lost` is the share of
    the target's records that never arrive.
    """

    rate: float = 60.0
    errors: float = 0.02
    target_errors: float | None = None
    latency_factor: float = 1.0
    cost_factor: float = 1.0
    spells: bool = False
    values: bool = False
    users: int = 0
    icc: float = 0.0
    clustering: bool = True
    lost: float = 0.0

    @property
    def error_rate_of_target(self) -> float:
        return self.errors if self.target_errors is None else self.target_errors


class Traffic(Protocol):
    def minute(self, number: int, stage: int, weight: int) -> MinuteCounts: ...

    def reference(self) -> tuple[dict[int, int], dict[int, int]]:
        """Latencies and costs of the day before."""
        ...


def traffic(world: World, rng: random.Random) -> Traffic:
    return Users(world, rng) if world.users else Requests(world, rng)


class Requests:
    """Independent requests: random allocation."""

    def __init__(self, world: World, rng: random.Random) -> None:
        self._world = world
        self._rng = rng
        self._phase = rng.random() * _DAY
        self._spell_until = {"failing": 0, "slow": 0}

    def minute(self, number: int, stage: int, weight: int) -> MinuteCounts:
        world, rng = self._world, self._rng
        share = weight / 100
        total = _poisson(rng, _rate_at(world.rate, number + self._phase))
        drawn = sum(rng.random() < share for _ in range(total))
        failing, slow = self._in_spell("failing", number), self._in_spell("slow", number)
        kept = sum(rng.random() >= world.lost for _ in range(drawn)) if world.lost else drawn
        target = self._arm(kept, world.error_rate_of_target, failing, slow, world.latency_factor, world.cost_factor)
        baseline = self._arm(total - drawn, world.errors, failing, slow, 1.0, 1.0)
        return MinuteCounts(number, stage, weight, target, baseline)

    def reference(self) -> tuple[dict[int, int], dict[int, int]]:
        if not self._world.values:
            return {}, {}
        return (
            _drawn(self._rng, _MEDIAN_MS, _LATENCY_SPREAD, _REFERENCE_VALUES),
            _drawn(self._rng, _MEDIAN_COST, _COST_SPREAD, _REFERENCE_VALUES),
        )

    def _arm(
        self, requests: int, rate: float, failing: bool, slow: bool, latency_factor: float, cost_factor: float
    ) -> ArmCounts:
        rng = self._rng
        rate = max(rate, _FAILING_SPELL_RATE) if failing else rate
        errors = sum(rng.random() < rate for _ in range(requests))
        if not self._world.values or requests == errors:
            return ArmCounts(requests, errors, units=requests)
        median = _MEDIAN_MS * latency_factor * (_SLOW_SPELL_FACTOR if slow else 1.0)
        latency = _drawn(rng, median, _LATENCY_SPREAD, requests - errors)
        cost = _drawn(rng, _MEDIAN_COST * cost_factor, _COST_SPREAD, requests - errors)
        dollars = Decimal(_sum(cost)).scaleb(-10)
        return ArmCounts(requests, errors, requests, latency, _sum(latency), cost, dollars)

    def _in_spell(self, kind: str, number: int) -> bool:
        if not self._world.spells:
            return False
        if number >= self._spell_until[kind] and self._rng.random() < 1 / _MINUTES_BETWEEN_SPELLS:
            self._spell_until[kind] = number + _SPELL_MINUTES
        return number < self._spell_until[kind]


class Users:
    """Sticky allocation: users differ in how much they ask and how often it fails, and keep their arm."""

    def __init__(self, world: World, rng: random.Random) -> None:
        self._world = world
        self._rng = rng
        self._phase = rng.random() * _DAY
        self._cumulative = list(accumulate(rng.paretovariate(1.3) for _ in range(world.users)))
        self._buckets = [rng.random() * 100 for _ in range(world.users)]
        precision = 1 / world.icc - 1
        self._rates = [
            rng.betavariate(world.errors * precision, (1 - world.errors) * precision) for _ in range(world.users)
        ]
        self._odds = _odds(world.error_rate_of_target) / _odds(world.errors)
        self._seen: set[int] = set()
        self._requests: Counter[int] = Counter()
        self._errors: Counter[int] = Counter()
        self._sums = [0.0] * 5

    def minute(self, number: int, stage: int, weight: int) -> MinuteCounts:
        rng = self._rng
        counts = {True: [0, 0, 0], False: [0, 0, 0]}
        for _ in range(_poisson(rng, _rate_at(self._world.rate, number + self._phase))):
            user = bisect.bisect(self._cumulative, rng.random() * self._cumulative[-1])
            is_target = self._buckets[user] < weight
            failed = rng.random() < self._rate(user, is_target)
            arm = counts[is_target]
            arm[0] += 1
            arm[1] += failed
            arm[2] += user not in self._seen
            self._seen.add(user)
            if not is_target:
                self._cluster(user, failed)
        target, baseline = (
            ArmCounts(requests=requests, errors=errors, units=units)
            for requests, errors, units in (counts[True], counts[False])
        )
        return MinuteCounts(number, stage, weight, target, baseline, self._clusters())

    def reference(self) -> tuple[dict[int, int], dict[int, int]]:
        return {}, {}

    def _rate(self, user: int, is_target: bool) -> float:
        if not is_target or self._odds == 1:
            return self._rates[user]
        odds = _odds(self._rates[user]) * self._odds
        return odds / (1 + odds)

    def _cluster(self, user: int, failed: bool) -> None:
        requests, errors = self._requests[user], self._errors[user]
        self._requests[user] += 1
        self._errors[user] += failed
        sums = self._sums
        sums[0] += 1
        sums[1] += 2 * requests + 1
        sums[2] += failed
        sums[3] += (2 * errors + 1) * failed
        sums[4] += errors + failed * (requests + 1)

    def _clusters(self) -> Mapping[Metric, ClusterSums]:
        if not self._world.clustering:
            return {}
        requests, requests_squared, total, total_squared, cross = self._sums
        return {Metric.ERROR_RATE: ClusterSums(requests, requests_squared, total, total_squared, cross, total)}


def _odds(rate: float) -> float:
    return rate / (1 - rate) if rate < 1 else math.inf


def _rate_at(rate: float, minute: float) -> float:
    """Day and night, in 24 steps so that the tables of chances stay few."""
    hour = math.floor(minute % _DAY / 60)
    return rate * (1 + 0.5 * math.sin(2 * math.pi * hour / 24))


@cache
def _poisson_table(rate: float) -> list[float]:
    chances = [math.exp(-rate)]
    while len(chances) < rate + 10 * math.sqrt(rate) + 10:
        chances.append(chances[-1] * rate / len(chances))
    return list(accumulate(chances))


def _poisson(rng: random.Random, rate: float) -> int:
    return bisect.bisect(_poisson_table(rate), rng.random())


def _drawn(rng: random.Random, median: float, spread: float, count: int) -> dict[int, int]:
    bins, cumulative = _log_normal(median, spread)
    return dict(Counter(rng.choices(bins, cum_weights=cumulative, k=count)))


@cache
def _log_normal(median: float, spread: float) -> tuple[list[int], list[float]]:
    """Bins and their cumulative chances for a log-normal value."""
    step = math.log(value_of(2))
    middle = 1 + math.log(median) / step
    bins = list(range(max(1, math.floor(middle - 5 * spread / step)), math.ceil(middle + 5 * spread / step)))
    return bins, [0.5 * math.erfc(-(number + 0.5 - middle) * step / spread / math.sqrt(2)) for number in bins]


def _sum(histogram: Mapping[int, int]) -> int:
    return round(math.fsum(value_of(number) * count for number, count in histogram.items()))
