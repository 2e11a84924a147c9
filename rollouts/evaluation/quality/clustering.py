"""How far the tasks of sticky allocation resemble each other, and whether there are users enough to know it.

Matched sampling takes as many tasks of both arms. So a small target has many tasks of few users, and the baseline few
tasks of many: how much the target's users make the sums vary is seen in the target alone. A few users spread around
their own mean by chance less than users do, which the design effect of other metrics, whose baseline has nearly all
requests, need not care about.
"""

from __future__ import annotations

from rollouts.evaluation.statistics.clustering import Variation
from rollouts.evaluation.statistics.clusters import ClusterSums, spread_of

ENOUGH_USERS = 5
"""The number of users of each arm from which on their design effect is believed. Users count by how alike their numbers
of tasks are: one who has nearly all of them makes one."""


def number_of_users(sums: ClusterSums) -> float:
    return sums.requests**2 / sums.requests_squared if sums.requests_squared else 0.0


def design_of_tasks(baseline: ClusterSums, target: ClusterSums | None, variation: Variation) -> float:
    """Returns the design effect over the users of both arms, each compared with the mean of their own arm; at least 1.
    Unlike `design_of_arms` it corrects the spread of few users."""
    spread = expected = 0.0
    for arm in (baseline, target or ClusterSums()):
        own, own_expected = spread_of(arm)
        left = 1 - arm.requests_squared / arm.requests**2 if arm.requests else 0.0
        if own_expected and left > 0:
            # Of independent tasks the spread is smaller by one task.
            spread += own / left * (1 - 1 / arm.requests)
            expected += own_expected
    if not expected:
        return 1.0
    return 1.0 + max(0.0, spread / expected - 1.0) / variation.share_within
