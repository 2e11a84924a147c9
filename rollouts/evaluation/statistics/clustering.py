"""The design effect of sticky allocation: by how much a user's requests count for less than independent ones.

The spread of the users' sums is compared with that of independent requests. An hour in which every request fails makes
both vary more without saying anything about users. The blocks' factors assume the variance within blocks, so the excess
of the users' spread is divided by that variance.
"""

from __future__ import annotations

from dataclasses import dataclass

from rollouts.evaluation.statistics.clusters import ClusterSums, spread_of


@dataclass(frozen=True, slots=True)
class Variation:
    """The baseline's values: number, sum and sum of squares over all blocks, and the sum of squared deviations from the
    mean of each value's own block, corrected for small blocks."""

    requests: float = 0.0
    total: float = 0.0
    squares: float = 0.0
    within: float = 0.0

    def with_block(self, requests: int, total: float, squares: float) -> Variation:
        if requests < 2:
            return self
        within = max(0.0, squares - total * total / requests) * requests / (requests - 1)
        return Variation(self.requests + requests, self.total + total, self.squares + squares, self.within + within)

    @property
    def share_within(self) -> float:
        overall = self.squares - self.total * self.total / self.requests if self.requests else 0.0
        return min(1.0, self.within / overall) if self.within and overall > 0 else 1.0


def design_of_arms(baseline: ClusterSums, target: ClusterSums | None, variation: Variation) -> float:
    """Returns the design effect over both arms' users, each compared with their own arm's mean; at least 1.

    Both arms count, because most of a few users who always fail may be in the target.
    """
    spread, expected = spread_of(baseline)
    if target is not None:
        more, more_expected = spread_of(target)
        spread, expected = spread + more, expected + more_expected
    if not expected:
        return 1.0
    return 1.0 + max(0.0, spread / expected - 1.0) / variation.share_within
