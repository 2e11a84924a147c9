"""Users instead of requests: each user who is new to the target counts once, whatever he is like.

With sticky allocation the requests of one user depend on each other, and a few users who always fail decide how the
arms compare. Among the users who were not yet in the target before a stage it is chance who is in it now; those of them
who have made five requests in the stage are as comparable as single requests are under random allocation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from rollouts.evaluation.evidence import TILTS, tilt_factors
from rollouts.evaluation.formula_2.blocks import joined_histograms
from rollouts.evaluation.formula_2.counts import Shares, UserCounts
from rollouts.evaluation.formula_2.policy import Metric
from rollouts.evaluation.reference import Reference

FIRST_REQUESTS = 5
"""So many requests of a user are looked at."""
LEAST_USERS = 30
"""A block of users closes when both arms together hold so many."""
SHARE_TILTS = (0.5, 1.0, 2.0, 4.0, 8.0)


@dataclass(frozen=True, slots=True)
class UserBlock:
    """Users of both arms who wait for their block to close."""

    target: UserCounts = field(default_factory=UserCounts)
    baseline: UserCounts = field(default_factory=UserCounts)

    @property
    def full(self) -> bool:
        return _number(self.target) + _number(self.baseline) >= LEAST_USERS

    def joined(self, target: UserCounts, baseline: UserCounts) -> UserBlock:
        return UserBlock(_joined(self.target, target), _joined(self.baseline, baseline))


NOBODY = UserBlock()


def user_factors(
    block: UserBlock, metric: Metric, *, reference: Reference | None, allowance: float
) -> tuple[float, ...] | None:
    """How much a block of users says that the target is worse, by tilt; None when it says nothing. `allowance` divides
    the target's values first."""
    target, baseline = block.target, block.baseline
    match metric:
        case Metric.UNANSWERED:
            return share_factors(target.unanswered, baseline.unanswered)
        case Metric.ERROR_RATE:
            return share_factors(target.errors, baseline.errors)
        case Metric.LATENCY_P95:
            return share_factors(target.slow, baseline.slow)
        case Metric.LATENCY_AVERAGE:
            arms = target.latency, baseline.latency
        case Metric.COST:
            arms = target.cost, baseline.cost
    if reference is None or not all(arms):
        return None
    return tilt_factors(*arms, reference, divisor=allowance, upwards=True)


def share_factors(target: Shares, baseline: Shares) -> tuple[float, ...] | None:
    """l Σ s - n ln( mean of exp(l s) ) for each l of `SHARE_TILTS`, s the share of a user's requests that were bad.

    Its mean over all choices of the target's users is at most 1 (Hoeffding 1963, theorem 4).
    """
    drawn, others = sum(target.values()), sum(baseline.values())
    if not drawn or not others:
        return None
    bad = sum(number * users for number, users in target.items()) / FIRST_REQUESTS
    both = joined_histograms(target, baseline)
    return tuple(
        tilt * bad
        - drawn * math.log(math.fsum([users * _EXP[tilt][number] for number, users in both.items()]) / (drawn + others))
        for tilt in SHARE_TILTS
    )


_EXP: Mapping[float, tuple[float, ...]] = {
    tilt: tuple(math.exp(tilt * number / FIRST_REQUESTS) for number in range(FIRST_REQUESTS + 1))
    for tilt in SHARE_TILTS
}
TILTS_OF: Mapping[Metric, int] = {
    metric: len(TILTS) if metric in (Metric.LATENCY_AVERAGE, Metric.COST) else len(SHARE_TILTS) for metric in Metric
}
"""How many tilts the users of each metric have."""


def _number(users: UserCounts) -> int:
    # Some users have no value of some metric.
    return max(sum(users.unanswered.values()), sum(users.errors.values()))


def _joined(one: UserCounts, other: UserCounts) -> UserCounts:
    return UserCounts(
        errors=joined_histograms(one.errors, other.errors),
        unanswered=joined_histograms(one.unanswered, other.unanswered),
        slow=joined_histograms(one.slow, other.slow),
        latency=joined_histograms(one.latency, other.latency),
        cost=joined_histograms(one.cost, other.cost),
    )
