"""What an evaluation reads: the counts of one minute, by arm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from rollouts.evaluation.formula_2.policy import Metric
from rollouts.evaluation.grid import Histogram

Shares = Mapping[int, int]
"""How many of a user's first five requests were bad, to the number of users."""


@dataclass(frozen=True, slots=True)
class UserCounts:
    """The users of one arm who count in this minute, of sticky allocation only: those who were not yet in the target
    before the stage, and whose fifth request of the stage was recorded in this minute.

    `latency` and `cost` hold the bins (see `grid`) of the means of a user's first five requests.
    """

    errors: Shares = field(default_factory=dict)
    unanswered: Shares = field(default_factory=dict)
    slow: Shares = field(default_factory=dict)
    latency: Histogram = field(default_factory=dict)
    cost: Histogram = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ArmCounts:
    """One arm of one stage in one minute, by the time at which the requests were recorded; cache hits left out of all
    but `units`.

    `requests` were allocated to the arm, and of these `unanswered` gave their users no proper answer, for the
    `reasons` given. `judged` are those whose outcome the service and the provider answer for, `errors` those of them
    that failed. `units` are the allocation units first seen in this minute. `latency` and `cost` count answered
    requests by bin, in ms and 10^-10 US dollars; `latency_ms` and `cost_usd` are their sums.
    """

    requests: int = 0
    unanswered: int = 0
    judged: int = 0
    errors: int = 0
    units: int = 0
    latency: Histogram = field(default_factory=dict)
    latency_ms: int = 0
    cost: Histogram = field(default_factory=dict)
    cost_usd: Decimal = Decimal(0)
    reasons: Mapping[str, int] = field(default_factory=dict)
    users: UserCounts = field(default_factory=UserCounts)


@dataclass(frozen=True, slots=True)
class ClusterSums:
    """Over the users u of an arm or of both so far, n_u the requests of one and x_u the sum of their values: Σn_u,
    Σn_u², Σx_u, Σx_u², Σx_u n_u, and the sum of the squared values of single requests. A value is 1 or 0 for an error,
    an unanswered or a slow request, else latency or cost, cut at the reference's `cap`.
    """

    requests: float = 0.0
    requests_squared: float = 0.0
    total: float = 0.0
    total_squared: float = 0.0
    cross: float = 0.0
    values_squared: float = 0.0


@dataclass(frozen=True, slots=True)
class MinuteCounts:
    """What was recorded in one closed minute of the requests of one stage. `minute` is Unix time divided by 60; stages
    count from 1.

    `clusters` is for sticky allocation only, where requests of a user depend on each other.
    """

    minute: int
    stage: int
    weight: int
    target: ArmCounts
    baseline: ArmCounts
    clusters: Mapping[Metric, ClusterSums] = field(default_factory=dict)
