"""Evidence from pairs of scored answers: the target's and the baseline's answer to the same input.

Each pair gives one difference D of scores in [0, 1], 1 being best. Two bets run along the pairs, each a mean over
several stakes (betting: Waudby-Smith and Ramdas 2024, arXiv 2010.09686):

- *worse* bets that the target's mean is lower. While D has a mean of at least 0 it is a supermartingale, whatever the
  distribution of D: answers that only differ do not count against the target.
- *not worse* bets that the mean of D is above minus the margin. While it is not, this is a supermartingale.

So either exceeds 1/a with probability a at most, however often one looks (Ville's inequality), if the order of the
pairs does not depend on their scores.

A pair counts for *worse* where both answers have scores. For *not worse* a missing score of the target counts as the
worst and one of the baseline as the best, so that nothing passes because its bad answers have no score.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import fmean, variance

from rollouts.evaluation.statistics.evidence import added, log_mean
from rollouts.evaluation.statistics.intervals import MISSES, half_width

STAKES = (0.05, 0.1, 0.2, 0.4, 0.8)


@dataclass(frozen=True, slots=True)
class Pair:
    """The scores of both answers to one input, in [0, 1]; None for an answer without a score."""

    target: float | None
    baseline: float | None


@dataclass(frozen=True, slots=True)
class Difference:
    """Means over the pairs in which both answers have a score: `difference` is target minus baseline, `low` to `high`
    its 95 % confidence sequence, None for fewer than two known pairs."""

    target: float
    baseline: float
    difference: float
    low: float | None
    high: float | None


def worse_factors(difference: float) -> tuple[float, ...]:
    """Returns by stake the logarithm of one pair's factor for *worse*; its difference is in [-1, 1]."""
    return tuple([math.log1p(-stake * difference) for stake in STAKES])


def not_worse_factors(difference: float, margin: float) -> tuple[float, ...]:
    # Divided by its largest value, so that the highest stake cannot lose all.
    gain = (difference + margin) / (1 + margin)
    return tuple([math.log1p(stake * gain) for stake in STAKES])


@dataclass(slots=True)
class PairProcess:
    """Takes pairs one by one. `margin` is the largest harmless loss of the mean score, between 0 and 1.

    `log_worse` and `log_not_worse` are logarithms of the e-values now; the peaks are their highest so far.
    """

    margin: float
    log_worse: float = 0.0
    log_not_worse: float = 0.0
    peak_worse: float = 0.0
    peak_not_worse: float = 0.0
    target_missing: int = 0
    baseline_missing: int = 0
    missing: int = 0
    _scored: list[tuple[float, float]] = field(default_factory=list)
    _worse: list[float] = field(default_factory=lambda: [0.0] * len(STAKES))
    _not_worse: list[float] = field(default_factory=lambda: [0.0] * len(STAKES))

    def __post_init__(self) -> None:
        if not 0 < self.margin < 1:
            raise ValueError("The margin is not between 0 and 1.")

    def add(self, pair: Pair) -> None:
        self.target_missing += pair.target is None
        self.baseline_missing += pair.baseline is None
        if pair.target is None or pair.baseline is None:
            self.missing += 1
        else:
            self._scored.append((pair.target, pair.baseline))
            self._bet_worse(pair.target - pair.baseline)
        self._bet_not_worse((pair.target or 0.0) - (1.0 if pair.baseline is None else pair.baseline))

    def _bet_worse(self, difference: float) -> None:
        self._worse = list(added(self._worse, worse_factors(difference)))
        self.log_worse = log_mean(self._worse)
        self.peak_worse = max(self.peak_worse, self.log_worse)

    def _bet_not_worse(self, difference: float) -> None:
        self._not_worse = list(added(self._not_worse, not_worse_factors(difference, self.margin)))
        self.log_not_worse = log_mean(self._not_worse)
        self.peak_not_worse = max(self.peak_not_worse, self.log_not_worse)

    @property
    def pairs(self) -> int:
        return len(self._scored) + self.missing

    @property
    def scored(self) -> int:
        return len(self._scored)

    @property
    def missing_share(self) -> float:
        return self.missing / self.pairs if self.pairs else 0.0

    @property
    def losses(self) -> int:
        return sum(target < baseline for target, baseline in self._scored)

    @property
    def wins(self) -> int:
        return sum(target > baseline for target, baseline in self._scored)

    @property
    def ties(self) -> int:
        return self.scored - self.wins - self.losses

    @property
    def difference(self) -> Difference | None:
        if not self._scored:
            return None
        target, baseline = (fmean(scores) for scores in zip(*self._scored, strict=True))
        mean = target - baseline
        count = len(self._scored)
        if count < 2:
            return Difference(target, baseline, mean, None, None)
        # Half a loss and half a win are added: pairs that were all alike so far do not prove that there are no others.
        seen = [one - other for one, other in self._scored]
        half = half_width(variance([*seen, 0.5, -0.5]) / count, count, MISSES / 2)
        return Difference(target, baseline, mean, max(mean - half, -1.0), min(mean + half, 1.0))
