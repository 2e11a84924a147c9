from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.rollouts.cache import Cache
from benchmarks.rollouts.counting import Flags, Floats, Integers
from benchmarks.rollouts.crowd import Crowd
from benchmarks.rollouts.limits import Spending, beyond_tokens, limited
from benchmarks.rollouts.requests import Requests
from benchmarks.rollouts.sessions import SessionCrowd
from benchmarks.rollouts.signals import signals
from benchmarks.rollouts.tally import Tally
from benchmarks.rollouts.traffic import Traffic
from benchmarks.rollouts.values import MEAN_COST, REFERENCE_VALUES, Values
from benchmarks.rollouts.warmth import COLD_DEARER, COLD_SLOWER, Prompts
from benchmarks.rollouts.weather import Conditions, error_rates, odds_ratio
from benchmarks.rollouts.worlds import Budget, Fault, Users, World
from rollouts.evaluation import ArmCounts, MinuteCounts, UserCounts
from rollouts.evaluation.statistics.grid import Histogram

_FAILS_AGAIN = 0.5
"""The smallest chance that a failed request fails again."""
_HANGS_MINUTES = 3
_REPORTED_MINUTES = 1
_START_UP_SLOWER = 3.0


@dataclass(frozen=True, slots=True)
class _Tried:
    minute: Integers
    user: Integers
    target: Flags
    question: Integers
    failed: Flags

    def at(self, chosen: Flags | Integers) -> _Tried:
        return _Tried(
            self.minute[chosen], self.user[chosen], self.target[chosen], self.question[chosen], self.failed[chosen]
        )


class Individual(Traffic):
    def __init__(self, world: World, rng: np.random.Generator) -> None:
        super().__init__(world, rng)
        self._crowd = _crowd(world, rng)
        self._keys = _keys(world, rng)
        self._cache = Cache(world.questions, rng) if world.questions else None
        if self._cache:
            self._cache.warm(rng, world.rate, world.errors)
        self._prompts = Prompts(world.prompt_caches) if world.prompt_caches else None
        units = self._keys or self._crowd
        self._spending = Spending(world.budget, units.number) if world.budget and units else None
        self._values = Values(world, self._crowd, rng)
        self._usual = self._values.reference(self._usually_slow())
        self._tally = Tally(world, self._usual, self._crowd)
        self._before = self._hours_before(world.budget) if world.budget else super().usual_unanswered()

    def _usually_slow(self) -> Floats:
        if not self._cache:
            return np.ones(REFERENCE_VALUES)
        return self._cache.slow[self._cache.drawn(self.rng, REFERENCE_VALUES)]

    def reference(self) -> tuple[Histogram, Histogram]:
        return self._usual

    def usual_unanswered(self) -> tuple[int, int]:
        return self._before

    def _hours_before(self, budget: Budget) -> tuple[int, int]:
        unanswered = requests = 0
        lasts = self.world.sessions.minutes if self.world.sessions else budget.minutes
        for hour in range(-math.ceil(lasts / 60), 0):
            first = 1 + 60 * hour
            drawn = self.requests(first, 0, 0, self._sky.minutes(first, 60))
            unanswered += int((drawn.refused | drawn.failed | drawn.early).sum())
            requests += len(drawn.minute)
            self._settle_units(60)
        return unanswered, requests

    def settle(self, minutes: int) -> None:
        self._tally.settle(minutes)
        self._settle_units(minutes)

    def cohort(self, from_weight: int) -> Mapping[str, UserCounts]:
        return self._tally.cohort(from_weight)

    def _settle_units(self, minutes: int) -> None:
        for one in (self._cache, self._prompts, self._spending):
            if one:
                one.settle(minutes)

    def draw(self, first: int, stage: int, weight: int, conditions: Conditions) -> Sequence[MinuteCounts]:
        arms = self._tally.arms(self.requests(first, stage, weight, conditions), stage, weight, conditions)
        return [
            MinuteCounts(first + index, stage, weight, target, baseline, *clusters)
            for index, (target, baseline, clusters) in enumerate(arms)
        ]

    def requests(self, first: int, stage: int, weight: int, conditions: Conditions) -> Requests:
        world, rng = self.world, self.rng
        harmed = stage >= world.harm_from
        tried = self._tried(first, stage, weight, conditions)
        if world.lost and harmed:
            tried = tried.at(~tried.target | (rng.random(len(tried.minute)) >= world.lost))
        minute, user, target = tried.minute, tried.user, tried.target
        number, nothing = len(minute), np.zeros(len(minute), dtype=bool)
        read = nothing
        if self._prompts:
            read = ~self._prompts.cold(rng, first, minute, target)
        latency, cost = self._drawn_values(first, tried, read, conditions, harmed=harmed)
        above, refused = self._refused(first, tried, cost)
        goes_on = ~(above | refused)
        failed = tried.failed & goes_on
        broken = left = early = nothing
        if world.fault and harmed:
            broken = target & goes_on & (rng.random(number) < world.fault_share)
        if world.cancelled:
            left = goes_on & ~broken & (rng.random(number) < world.cancelled)
            early = left & (rng.random(number) < 0.5)
        hit = elsewhere = nothing
        if self._cache:
            answered = goes_on & ~(failed | broken | left)
            hit, elsewhere = self._cache.hits(first, minute, target, tried.question, answered)
        return Requests(
            minute=minute,
            user=user,
            target=target,
            failed=failed & ~broken & ~left,
            broken=broken,
            left=left,
            early=early,
            refused=refused & ~above,
            hit=hit,
            elsewhere=elsewhere if world.compared_alike else nothing,
            limited=above,
            latency=latency,
            cost=cost,
            signals=signals(world, rng, target & harmed, conditions.fallback[minute]),
            read=read,
        )

    def _drawn_values(
        self, first: int, tried: _Tried, read: Flags, conditions: Conditions, *, harmed: bool
    ) -> tuple[Floats, Floats] | tuple[None, None]:
        world = self.world
        if not world.values:
            return None, None
        harm = tried.target & harmed
        slow = np.where(harm, world.latency_factor, 1.0) * conditions.slow[tried.minute]
        dear = np.where(harm, world.cost_factor, 1.0)
        if self._cache:
            slow *= self._cache.slow[tried.question]
        if self._prompts:
            slow[~read] *= COLD_SLOWER
            dear[~read] *= COLD_DEARER
        if world.start_up:
            starting = first + tried.minute < self.stage_began + world.start_up
            slow[tried.target & starting] *= _START_UP_SLOWER
        return self._values.latency(tried.user, slow), self._values.cost(tried.user, dear)

    def _refused(self, first: int, tried: _Tried, cost: Floats | None) -> tuple[Flags, Flags]:
        world, nothing = self.world, np.zeros(len(tried.minute), dtype=bool)
        unit = self._keys.drawn(self.rng, len(tried.minute)) if self._keys else tried.user
        above = limited(world.rate_limit, tried.minute, unit) if world.rate_limit else nothing
        if cost is None:
            return above, nothing
        spent = np.where(above | tried.failed, 0.0, cost)
        if self._spending:
            return above, self._spending.refused(first, tried.minute, unit, spent)
        if world.token_limit:
            return above, beyond_tokens(world.token_limit * world.rate * MEAN_COST, tried.minute, spent)
        return above, nothing

    def _tried(self, first: int, stage: int, weight: int, conditions: Conditions) -> _Tried:
        world, rng = self.world, self.rng
        total = rng.poisson(world.rate * conditions.load)
        minute = np.repeat(np.arange(len(total)), total)
        user = self._users(first, minute)
        question = self._cache.drawn(rng, len(minute)) if self._cache else np.zeros(len(minute), dtype=np.int64)
        tries, min_chance = [], 0.0
        for _ in range(1 + world.retries):
            target = self._arms(user, weight)
            chance = np.maximum(self._chances(minute, user, target, stage, conditions), min_chance)
            if self._cache:
                chance = chance * self._cache.failing[question]
            tried = _Tried(minute, user, target, question, rng.random(len(minute)) < chance)
            tries.append(tried)
            again = tried.at(tried.failed)
            minute, user, question, min_chance = again.minute, again.user, again.question, _FAILS_AGAIN
        if not world.retries:
            return tries[0]
        columns = ([getattr(one, name) for one in tries] for name in ("minute", "user", "target", "question", "failed"))
        together = _Tried(*(np.concatenate(parts) for parts in columns))
        return together.at(np.argsort(together.minute, kind="stable"))

    def _users(self, first: int, minute: Integers) -> Integers:
        if isinstance(self._crowd, SessionCrowd):
            return self._crowd.at(self.rng, first + minute)
        if self._crowd:
            return self._crowd.drawn(self.rng, len(minute))
        return np.zeros(len(minute), dtype=np.int64)

    def _arms(self, user: Integers, weight: int) -> Flags:
        arms: Flags
        arms = self._crowd.buckets[user] < weight if self._crowd else self.rng.random(len(user)) < weight / 100
        return arms

    def _chances(self, minute: Integers, user: Integers, target: Flags, stage: int, conditions: Conditions) -> Floats:
        odds, failing = conditions.odds[minute], conditions.failing[minute]
        rate, base = self.target_rate(stage), self.world.errors
        if self._crowd:
            worse = odds_ratio(base, rate)
            failing = np.where(self._crowd.broken(user, self.first + minute), 1.0, failing)
            return error_rates(self._crowd.rates[user], np.where(target, worse, 1.0) * odds, failing)
        return error_rates(np.where(target, rate, base), odds, failing)


def _crowd(world: World, rng: np.random.Generator) -> Crowd | None:
    if world.sessions:
        return SessionCrowd(world.sessions, world.errors, rng)
    return Crowd(world.users, world.errors, rng) if world.users else None


def _keys(world: World, rng: np.random.Generator) -> Crowd | None:
    limit = world.budget or world.rate_limit
    return Crowd(Users(limit.keys), world.errors, rng) if limit and limit.keys else None


class Hanging(Individual):
    """Some of the target's requests hang for 200 seconds and then fail.

    With `open_requests_reported` they count as unanswered after a minute, and as errors when they fail; without it, as
    both when they fail. A row that comes after a change of stage belongs to its own stage.
    """

    def __init__(self, world: World, rng: np.random.Generator) -> None:
        super().__init__(world, rng)
        self._hanging = np.zeros(0, dtype=np.int64)
        self._late: dict[int, dict[tuple[int, int], ArmCounts]] = defaultdict(dict)

    def requests(self, first: int, stage: int, weight: int, conditions: Conditions) -> Requests:
        drawn = super().requests(first, stage, weight, conditions)
        self._hanging = np.bincount(drawn.minute[drawn.broken], minlength=len(conditions.load))
        return drawn.where(~drawn.broken)

    def minute(self, number: int, stage: int, weight: int, *, look: bool = False) -> list[MinuteCounts]:
        [now] = super().minute(number, stage, weight, look=look)
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
