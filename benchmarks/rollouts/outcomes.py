"""The share of runs in which something happened, and whether it is compatible with the promise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.binomial import limits
from benchmarks.rollouts.runs import Run

Results = Mapping[str, Sequence[Run]]
"""The runs by cell."""


@dataclass(frozen=True, slots=True)
class Promise:
    """A promise: the share of runs is at most, or at least, `bound`; with a bound of 0 it never happens. `detail`
    adds further figures of these runs."""

    text: str
    cells: tuple[str, ...]
    bound: float
    happened: Callable[[Run], bool]
    at_least: bool = False
    detail: Callable[[Sequence[Run]], str] = lambda runs: ""

    def outcome(self, results: Results) -> Outcome:
        runs = [run for cell in self.cells for run in results.get(cell, ())]
        return Outcome(self, sum(map(self.happened, runs)), len(runs), self.detail(runs))


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
        """Returns whether the promised bound is incompatible with the measured share."""
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
