from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.binomial import limits
from benchmarks.rollouts.runs import Run

_DEVIATIONS = 1.96
"""The standard deviations within which a normal mean lies with 95 %."""

Results = Mapping[str, Sequence[Run]]
"""The runs by cell."""


@dataclass(frozen=True, slots=True)
class Promise:
    text: str
    cells: tuple[str, ...]
    bound: float
    happened: Callable[[Run], bool]
    at_least: bool = False
    detail: Callable[[Sequence[Run]], str] = lambda runs: ""

    def outcome(self, results: Results) -> Outcome:
        runs = [run for cell in self.cells for run in results.get(cell, ())]
        return Outcome(self, sum(map(self.happened, runs)), len(runs), self.detail(runs))


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean(Promise):
    """A promise on the mean of a `value` from 0 to 1. Its limits are those of a normal mean."""

    happened: Callable[[Run], bool] = bool
    value: Callable[[Run], float]

    def outcome(self, results: Results) -> Outcome:
        runs = [run for cell in self.cells for run in results.get(cell, ())]
        values = [self.value(run) for run in runs]
        mean = statistics.fmean(values)
        half = _DEVIATIONS * statistics.stdev(values) / math.sqrt(len(values))
        return MeanOutcome(self, len(runs), len(runs), self.detail(runs), mean, (max(0.0, mean - half), mean + half))


@dataclass(frozen=True, slots=True)
class Outcome:
    promise: Promise
    happened: int
    runs: int
    detail: str

    @property
    def share(self) -> float:
        return self.happened / self.runs

    @property
    def limits(self) -> tuple[float, float]:
        return limits(self.happened, self.runs)

    @property
    def broken(self) -> bool:
        low, high = self.limits
        return high < self.promise.bound if self.promise.at_least else low > self.promise.bound

    @property
    def standing(self) -> str:
        if self.broken:
            return "**broken**"
        if self.promise.bound == 0:
            return "kept"
        low, high = self.limits
        shown = low >= self.promise.bound if self.promise.at_least else high <= self.promise.bound
        met = self.share >= self.promise.bound if self.promise.at_least else self.share <= self.promise.bound
        return "kept" if shown else "kept, within chance" if met else "missed, within chance"


@dataclass(frozen=True, slots=True)
class MeanOutcome(Outcome):
    share: float = 0.0
    limits: tuple[float, float] = (0.0, 1.0)
