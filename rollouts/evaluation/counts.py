from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from decimal import Decimal
from operator import add, attrgetter
from typing import Any

from rollouts.evaluation.policy import EXACT, Metric
from rollouts.evaluation.statistics.clusters import ClusterSums, MinuteUsers
from rollouts.evaluation.statistics.grid import Histogram

Shares = Mapping[int, int]
"""The number of users by how many of their first five requests were bad."""
ByUser = Mapping[Metric, MinuteUsers]


@dataclass(frozen=True, slots=True)
class UserCounts:
    """The users of one arm who start to count in this minute, for sticky allocation only: users who were not in the
    target before the stage, and whose fifth request of the stage was recorded in this minute.

    `latency` and `cost` hold the bins (see `grid`) of the means of a user's first five requests. `eased` is for cohorts
    (see `MinuteCounts`) only: requests that are slow even when divided by the margin.
    """

    errors: Shares = field(default_factory=dict)
    unanswered: Shares = field(default_factory=dict)
    slow: Shares = field(default_factory=dict)
    eased: Shares = field(default_factory=dict)
    contract: Shares = field(default_factory=dict)
    truncated: Shares = field(default_factory=dict)
    fallback: Shares = field(default_factory=dict)
    empty: Shares = field(default_factory=dict)
    latency: Histogram = field(default_factory=dict)
    cost: Histogram = field(default_factory=dict)


MEASURES: Mapping[Metric, str] = {
    Metric.UNANSWERED: "unanswered",
    Metric.ERROR_RATE: "errors",
    Metric.LATENCY_P95: "slow",
    **{metric: metric.value for metric in EXACT},
    Metric.LATENCY_AVERAGE: "latency",
    Metric.COST: "cost",
}
"""The field of `UserCounts` that has a metric, and its measure in `analytics.queries.variants.measures`."""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """How requests of one arm ended.

    `requests` were allocated to the arm; `unanswered` of them gave their users no proper answer. `judged` are those
    whose outcome the service and the provider answer for, `errors` those of them that failed.

    `answered` succeeded; `contract`, `truncated`, `fallback` and `empty` of them had that fault (see `policy.EXACT`).
    In `stopped` the client left after the first output.

    `requests` leaves out those whose question was in the other arm's cache: these `uncompared` ones count for a stage's
    minima, and `uncompared_unanswered` of them got no proper answer.
    """

    requests: int = 0
    unanswered: int = 0
    judged: int = 0
    errors: int = 0
    answered: int = 0
    contract: int = 0
    truncated: int = 0
    fallback: int = 0
    empty: int = 0
    stopped: int = 0
    uncompared: int = 0
    uncompared_unanswered: int = 0


@dataclass(frozen=True, slots=True)
class ArmCounts(Outcomes):
    """The counts of one arm of one stage in one minute, by the time at which the requests were recorded.

    `units` are allocation units first seen in this minute. `latency` and `cost` count answered requests by bin, in ms
    and 10^-10 US dollars; `latency_ms` and `cost_usd` are their sums. `latency_read` and `cost_read` are those of them
    whose prompt the provider read from its cache. `reasons` are those of unanswered requests.
    `left_out` are requests that count among `units` only, by reason, cache hits among them. `by_user` separates users,
    for sticky allocation only.
    """

    units: int = 0
    latency: Histogram = field(default_factory=dict)
    latency_ms: int = 0
    cost: Histogram = field(default_factory=dict)
    cost_usd: Decimal = Decimal(0)
    latency_read: Histogram = field(default_factory=dict)
    cost_read: Histogram = field(default_factory=dict)
    reasons: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    users: UserCounts = field(default_factory=UserCounts)
    by_user: ByUser = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MinuteCounts:
    """The counts of one stage in one closed minute. `minute` is Unix time divided by 60; stages count from 1.

    A `settling` minute is judged by its rates only: latency and cost may differ until a stage has warmed up.

    `clusters` (baseline's users) and `target_clusters` are for sticky allocation, where requests of a user depend on
    each other: sums from the start to the end of this or an earlier minute, never of a later one. They weigh the
    minutes after this one.

    `cohort` has the users of each arm, "target" and "baseline", when a look at them is due (see `cohort`). All requests
    of the stage until an earlier time or the end of this minute count, and shares are in thousandths.
    """

    minute: int
    stage: int
    weight: int
    target: ArmCounts
    baseline: ArmCounts
    clusters: Mapping[Metric, ClusterSums] = field(default_factory=dict)
    target_clusters: Mapping[Metric, ClusterSums] = field(default_factory=dict)
    settling: bool = False
    cohort: Mapping[str, UserCounts] = field(default_factory=dict)


def check_place(minute: int, stage: int, *, last: tuple[int, int], stages: int) -> None:
    if (minute, stage) <= last:
        raise ValueError(f"minute {minute} of stage {stage} does not follow {last[0]} of {last[1]}")
    if not 1 <= stage <= stages:
        raise ValueError(f"there is no stage {stage}: the rollout has {stages}")


SUMS = tuple(one.name for one in fields(Outcomes))

sums_of: Callable[[Any], tuple[int, ...]] = attrgetter(*SUMS)


def combined(one: Outcomes, other: Outcomes, how: Callable[[int, int], int] = add) -> dict[str, Any]:
    return dict(zip(SUMS, map(how, sums_of(one), sums_of(other)), strict=True))


_EVENTS: Mapping[Metric, Callable[[Any], tuple[int, int]]] = {
    Metric.UNANSWERED: attrgetter("unanswered", "requests"),
    Metric.ERROR_RATE: attrgetter("errors", "judged"),
    Metric.STOPPED: attrgetter("stopped", "requests"),
    **{metric: attrgetter(metric.value, "answered") for metric in EXACT},
}


def events_of(arm: Any, metric: Metric) -> tuple[int, int]:
    return _EVENTS[metric](arm)
