"""Evidence by user for sticky allocation: each user who is new to the target counts once.

The requests of one user depend on each other, and a few users who always fail can decide how the arms compare. Among
the users who were not in the target before a stage, chance decides who is in it now. Those of them with five requests
in the stage are as comparable as single requests are under random allocation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields

from rollouts.evaluation.blocks import joined_histograms
from rollouts.evaluation.counts import MEASURES, Shares, UserCounts
from rollouts.evaluation.policy import MEANS, Metric
from rollouts.evaluation.statistics.evidence import COARSE_TILTS
from rollouts.evaluation.statistics.grid import Histogram, value_of
from rollouts.evaluation.statistics.reference import Reference

FIRST_REQUESTS = 5
"""The number of a user's first requests that are looked at."""
MIN_USERS = 15
"""A block of users closes when both arms together hold so many users."""
LOOKS = (180, 480, 960)
"""The minutes of a stage after which its cohort is looked at. Each look gets the same part of the evidence so far."""
SHARE_TILTS = (0.5, 1.0, 2.0, 4.0, 8.0)
"""The tilts for the share of a user's requests that were bad: a user who always fails counts e^l, a user who fails once
e^(l/5)."""

_MAX_EXACT = 100
"""Beyond so many users the mean over all choices is bounded by the mean over choices with replacement, which is
quicker."""


@dataclass(frozen=True, slots=True)
class UserBlock:
    target: UserCounts = field(default_factory=UserCounts)
    baseline: UserCounts = field(default_factory=UserCounts)

    @property
    def full(self) -> bool:
        return _number(self.target) + _number(self.baseline) >= MIN_USERS

    def joined(self, target: UserCounts, baseline: UserCounts) -> UserBlock:
        return UserBlock(_joined(self.target, target), _joined(self.baseline, baseline))


NOBODY = UserBlock()


def user_factors(
    block: UserBlock, metric: Metric, *, reference: Reference | None, allowance: float
) -> tuple[float, ...] | None:
    """Returns by tilt how much a block of users speaks for a worse target; None if it says nothing. The target's values
    are divided by `allowance` first."""
    if metric not in MEASURES:
        return None
    target, baseline = (getattr(arm, MEASURES[metric]) for arm in (block.target, block.baseline))
    if metric not in MEANS:
        return share_factors(target, baseline)
    if reference is None:
        return None
    own, theirs = _scores(target, reference, allowance), _scores(baseline, reference, 1.0)
    return choice_factors(own, theirs, COARSE_TILTS)


def share_factors(target: Shares, baseline: Shares) -> tuple[float, ...] | None:
    own, theirs = (
        [number / FIRST_REQUESTS for number in sorted(shares) for _ in range(shares[number])]
        for shares in (target, baseline)
    )
    return choice_factors(own, theirs, SHARE_TILTS)


def _log_bound(weights: Sequence[float], drawn: int) -> float:
    return drawn * math.log(math.fsum(weights) / len(weights))


def choice_factors(
    target: Sequence[float],
    baseline: Sequence[float],
    tilts: Sequence[float],
    *,
    of_many: Callable[[Sequence[float], int], float] = _log_bound,
) -> tuple[float, ...] | None:
    """Returns ln( exp(l Σ s) / its mean over all choices of so many of these users ) for each tilt l, s being the
    target's scores.

    The mean is exactly 1, and for very many users at most 1: `of_many` then bounds the mean over the choices, which it
    does not fall below (as drawing with replacement, Hoeffding 1963, theorem 4). None when an arm is empty.
    """
    if not target or not baseline:
        return None
    scores = [*target, *baseline]
    # Scores around their mean keep the mean over the choices at 1 or above (Jensen), and products within a float.
    middle = math.fsum(scores) / len(scores)
    own = math.fsum(target) - len(target) * middle
    mean = log_mean_of_choices if len(scores) <= _MAX_EXACT else of_many
    return tuple(
        tilt * own - mean([math.exp(tilt * (score - middle)) for score in scores], len(target)) for tilt in tilts
    )


def log_mean_of_choices(weights: Sequence[float], drawn: int) -> float:
    """Returns ln of the mean product over all choices of `drawn` of the weights.

    Adds the weights one by one: a choice of j out of d contains the last one with probability j/d.
    """
    means = [1.0] + [0.0] * drawn
    for count, weight in enumerate(weights, 1):
        for chosen in range(min(count, drawn), 0, -1):
            means[chosen] += chosen / count * (weight * means[chosen - 1] - means[chosen])
    return math.log(means[drawn])


def _scores(means: Histogram, reference: Reference, divisor: float) -> list[float]:
    return [
        (min(value_of(number) / divisor, reference.cap) - reference.mean) / reference.deviation
        for number in sorted(means)
        for _ in range(means[number])
    ]


TILTS_OF: Mapping[Metric, int] = {
    metric: len(COARSE_TILTS) if metric in MEANS else len(SHARE_TILTS) for metric in Metric
}
"""The number of tilts that each metric's users have."""


def _number(users: UserCounts) -> int:
    # The larger sum counts, because some users have no value of some metric.
    return max(sum(users.unanswered.values()), sum(users.errors.values()))


def _joined(one: UserCounts, other: UserCounts) -> UserCounts:
    return UserCounts(
        **{
            measure.name: joined_histograms(getattr(one, measure.name), getattr(other, measure.name))
            for measure in fields(UserCounts)
        }
    )
