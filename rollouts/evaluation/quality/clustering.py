"""How far the tasks of sticky allocation resemble each other, by user.

Matched sampling takes as many tasks of both arms. So a small target has many tasks of few users, and the baseline few
tasks of many users: what the target's few users have in common shows in the target alone.

- The evidence is weighed by the design effect around each arm's own mean, with a correction, because a few users spread
  around their own mean less than users do.
- It rolls back only if the design effect around the mean of both arms is small, too. That one mistakes for likeness of
  users what may be the target's doing, and is large where few users may have made the difference.
"""

from __future__ import annotations

from rollouts.evaluation.one_user import design_within
from rollouts.evaluation.statistics.clustering import Variation
from rollouts.evaluation.statistics.clusters import ClusterSums, joined_sums, spread_of

ENOUGH_USERS = 10
"""The number of users of each arm from which on their design effect is believed. Users count by how alike their numbers
of tasks are: one who has nearly all of them makes one."""

NO_USERS = ClusterSums()


def design_of_tasks(baseline: ClusterSums, target: ClusterSums, variation: Variation) -> float:
    """Returns the design effect over both arms' users, each compared with their own arm's mean; at least 1. Unlike
    `design_of_arms`, it corrects the spread of few users."""
    spread = expected = 0.0
    for arm in (baseline, target):
        own, own_expected = spread_of(arm)
        left = 1 - arm.requests_squared / arm.requests**2 if arm.requests else 0.0
        if own_expected and left > 0:
            # Of independent tasks the spread is smaller by one task.
            spread += own / left * (1 - 1 / arm.requests)
            expected += own_expected
    return _relative(spread / expected, variation) if expected else 1.0


def design_of_both(baseline: ClusterSums, target: ClusterSums, variation: Variation) -> float | None:
    """Returns the design effect over both arms' users, all compared with the mean of both; at least 1. None if an arm
    has too few users for it to be believed."""
    if min(map(number_of_users, (baseline, target))) < ENOUGH_USERS:
        return None
    return _relative(design_within(joined_sums(baseline, target)), variation)


def number_of_users(sums: ClusterSums) -> float:
    return sums.requests**2 / sums.requests_squared if sums.requests_squared else 0.0


def _relative(design: float, variation: Variation) -> float:
    return 1.0 + max(0.0, design - 1.0) / variation.share_within
