from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields


@dataclass(frozen=True, slots=True)
class ClusterSums:
    """Sums of one metric over the units u of an arm, from the rollout's start to the end of a minute or of one minute
    alone.

    With n_u requests of a unit and x_u the sum of their values: Σn_u, Σn_u², Σx_u, Σx_u², Σx_u n_u, and the sum of the
    squared values of single requests. A value is 1 or 0 for an event, else latency or cost, cut at the reference's
    `cap`.
    """

    requests: float = 0.0
    requests_squared: float = 0.0
    total: float = 0.0
    total_squared: float = 0.0
    cross: float = 0.0
    values_squared: float = 0.0


@dataclass(frozen=True, slots=True)
class MinuteUsers:
    """The users of one metric and one arm in one minute: the sums over its requests, in which users count anew every
    minute, and, for metrics that count requests, the events of the users who had most, by bucket (0 to 9,999)."""

    sums: ClusterSums = field(default_factory=ClusterSums)
    events: Mapping[int, int] = field(default_factory=dict)


def joined_sums(one: ClusterSums, other: ClusterSums) -> ClusterSums:
    return ClusterSums(*[getattr(one, part.name) + getattr(other, part.name) for part in fields(ClusterSums)])


def spread_of(sums: ClusterSums) -> tuple[float, float]:
    """Returns the variance of units' sums around the expectation for their number of requests, and the variance of
    independent requests: 0 where nothing varies."""
    if not sums.requests:
        return 0.0, 0.0
    mean = sums.total / sums.requests
    variance = sums.values_squared / sums.requests - mean**2
    if variance <= 0:
        return 0.0, 0.0
    spread = sums.total_squared - 2 * mean * sums.cross + mean**2 * sums.requests_squared
    return spread, variance * sums.requests
