from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.rollouts.weather import Conditions, Sky, error_rates
from benchmarks.rollouts.worlds import Fault, World
from rollouts.evaluation import ArmCounts, MinuteCounts, UserCounts
from rollouts.evaluation.statistics.grid import Histogram

_BLOCK = 60
_DAY = 1440


class Traffic(ABC):
    """The minutes of one rollout, requested one after the other.

    They are drawn an hour ahead, and anew from the minute in which the stage changes. So the same seed gives the same
    minutes as long as the stages change at the same minutes.
    """

    def __init__(self, world: World, rng: np.random.Generator) -> None:
        self.world = world
        self.rng = rng
        self._sky = Sky(world.weather, rng)
        self._key = (0, 0)
        self.stage_began = 1
        self._conditions = self._sky.minutes(1, 0)
        self._block = self.first = self._end = 0
        self._ahead: Sequence[MinuteCounts] = ()

    def minute(self, number: int, stage: int, weight: int, *, look: bool = False) -> list[MinuteCounts]:
        """With a `look`, all minutes before have happened, for `cohort`."""
        if number >= self._end:
            self.settle(number - self.first)
            self._block, self._end = number, number + _BLOCK
            self._conditions = self._sky.minutes(number, _BLOCK)
            self._draw(number, stage, weight)
        elif look or (stage, weight) != self._key:
            self.settle(number - self.first)
            self._draw(number, stage, weight)
        return [self._ahead[number - self.first]]

    def _draw(self, number: int, stage: int, weight: int) -> None:
        if stage != self._key[0]:
            self.stage_began = number
        self.first, self._key = number, (stage, weight)
        self._ahead = self.draw(number, stage, weight, self._conditions.after(number - self._block))

    @abstractmethod
    def draw(self, first: int, stage: int, weight: int, conditions: Conditions) -> Sequence[MinuteCounts]:
        """Returns the minutes from `first` on, one for each of the conditions; none of them has happened yet."""

    def settle(self, minutes: int) -> None:  # noqa: B027 - most traffic remembers nothing
        """The first `minutes` of the minutes drawn have happened, the others have not."""

    def cohort(self, from_weight: int) -> Mapping[str, UserCounts]:
        """Returns the users with a bucket from this weight on, by what has happened of the stage."""
        return {}

    def reference(self) -> tuple[Histogram, Histogram]:
        return {}, {}

    def usual_unanswered(self) -> tuple[int, int]:
        world = self.world
        conditions = Sky(world.weather, self.rng).minutes(1, _DAY)
        requests = world.rate * conditions.load
        usual = world.errors if world.usual_errors is None else world.usual_errors
        unanswered = requests * error_rates(usual, conditions.odds, conditions.failing)
        left = requests * world.cancelled / 2
        return round(float((unanswered + left).sum())), round(float(requests.sum()))

    def target_rate(self, stage: int) -> float:
        world = self.world
        harmed = world.target_errors is not None and stage >= world.harm_from
        return world.target_errors if harmed and world.target_errors is not None else world.errors


class Plain(Traffic):
    """Independent requests that succeed or fail, in any number: random allocation."""

    def draw(self, first: int, stage: int, weight: int, conditions: Conditions) -> list[MinuteCounts]:
        world, rng = self.world, self.rng
        total = rng.poisson(world.rate * conditions.load)
        drawn = rng.binomial(total, weight / 100)
        kept = rng.binomial(drawn, 1 - world.lost) if world.lost and stage >= world.harm_from else drawn
        target = error_rates(self.target_rate(stage), conditions.odds, conditions.failing)
        baseline = error_rates(world.errors, conditions.odds, conditions.failing)
        others = total - drawn
        columns = (kept, rng.binomial(kept, target), others, rng.binomial(others, baseline))
        return [
            MinuteCounts(first + index, stage, weight, _arm(requests, errors), _arm(theirs, their_errors))
            for index, (requests, errors, theirs, their_errors) in enumerate(
                zip(*(column.tolist() for column in columns), strict=True)
            )
        ]


def _arm(requests: int, errors: int) -> ArmCounts:
    reasons = {Fault.FAILED.value: errors} if errors else {}
    return ArmCounts(
        requests=requests,
        unanswered=errors,
        judged=requests,
        errors=errors,
        answered=requests - errors,
        units=requests,
        reasons=reasons,
    )
