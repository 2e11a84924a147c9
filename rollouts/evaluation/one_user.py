"""One user is one user: with sticky allocation no single user's requests decide a block.

A user whose client breaks makes many events within minutes, all in one arm, before the design effect of all users so
far knows of it. Two rules keep these events from deciding. Both treat the users of both arms alike, so that the mean of
a factor over all choices of the target's users does not rise:

- Of the events of a block a user counts for a third at most, and for one where there are fewer than three.

- The block's own users have a design effect, too. The block counts for that many times less, and requests alone do not
  fail a metric while it is large.

Evidence that the target is safe is not capped, so the events of one user never make a target look safer.
"""

from __future__ import annotations

from rollouts.evaluation.counts import ArmCounts, ByUser
from rollouts.evaluation.policy import Metric
from rollouts.evaluation.statistics.clusters import ClusterSums, MinuteUsers, joined_sums, spread_of

ONE_IN = 3
"""A user counts for one event in so many."""


def excess(target: ArmCounts, baseline: ArmCounts, metric: Metric) -> tuple[int, int]:
    arms = [_users(arm, metric).events for arm in (target, baseline)]
    most = max(1, round(sum(_users(arm, metric).sums.total for arm in (target, baseline))) // ONE_IN)
    own, theirs = (sum([events - most for events in arm.values() if events > most]) for arm in arms)
    return own, theirs


def block_design(target: ArmCounts, baseline: ArmCounts, metric: Metric) -> float:
    """Returns the design effect over a block's users, all compared with the mean of both arms; at least 1.

    That mean does not depend on which arm a user is in, and in a small block it is known much better than each arm's.
    """
    own, theirs = (_users(arm, metric).sums for arm in (target, baseline))
    return design_within(joined_sums(own, theirs))


def design_within(sums: ClusterSums) -> float:
    spread, expected = spread_of(sums)
    if not expected:
        return 1.0
    number = sums.requests
    # The mean is that of these few users themselves, around which they spread less; the more so, the fewer they are.
    left = 1 - sums.requests_squared / number**2
    return min(number, max(1.0, spread / expected * (1 - 1 / number) / left)) if left > 0 else number


def joined(one: MinuteUsers, other: MinuteUsers) -> MinuteUsers:
    buckets = sorted({*one.events, *other.events})
    events = {bucket: one.events.get(bucket, 0) + other.events.get(bucket, 0) for bucket in buckets}
    return MinuteUsers(joined_sums(one.sums, other.sums), events)


def joined_by_user(one: ByUser, other: ByUser) -> ByUser:
    if not one or not other:
        return one or other
    return {metric: joined(one.get(metric, _NOBODY), other.get(metric, _NOBODY)) for metric in sorted({*one, *other})}


_NOBODY = MinuteUsers(ClusterSums())


def _users(arm: ArmCounts, metric: Metric) -> MinuteUsers:
    return arm.by_user.get(metric, _NOBODY)
