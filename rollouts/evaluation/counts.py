"""The input of an evaluation: the counts of one minute, by arm."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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

    `latency` and `cost` hold the bins (see `grid`) of the means of a user's first five requests.
    """

    errors: Shares = field(default_factory=dict)
    unanswered: Shares = field(default_factory=dict)
    slow: Shares = field(default_factory=dict)
    contract: Shares = field(default_factory=dict)
    truncated: Shares = field(default_factory=dict)
    fallback: Shares = field(default_factory=dict)
    empty: Shares = field(default_factory=dict)
    latency: Histogram = field(default_factory=dict)
    cost: Histogram = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ArmCounts:
    """The counts of one arm of one stage in one minute, by the time at which the requests were recorded.

    `requests` were allocated to the arm, and of these `unanswered` gave their users no proper answer, for the
    `reasons` given. `judged` are the requests whose outcome the service and the provider answer for, `errors` those of
    them that failed. `answered` succeeded, and `contract`, `truncated`, `fallback` and `empty` are those of them with
    that fault (see `policy.EXACT`); of `stopped` requests the client left after the first output. Requests whose
    question was in the other arm's cache are not among `requests`: these `uncompared` ones count for the minima of a
    stage, and `uncompared_unanswered` of them got no proper answer. `left_out` are the requests that count among
    `units` only, by reason, cache hits among them. `units` are the allocation units first seen in this minute.
    `latency` and `cost` count answered requests by bin, in ms and 10^-10 US dollars; `latency_ms` and `cost_usd` are
    their sums. `by_user` tells the users of this minute's requests apart, for sticky allocation only.
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
    units: int = 0
    latency: Histogram = field(default_factory=dict)
    latency_ms: int = 0
    cost: Histogram = field(default_factory=dict)
    cost_usd: Decimal = Decimal(0)
    reasons: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    users: UserCounts = field(default_factory=UserCounts)
    by_user: ByUser = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MinuteCounts:
    """The counts of one stage in one closed minute. `minute` is Unix time divided by 60; stages count from 1.

    A minute that is `settling` is judged by its rates only: latency and cost may differ until a stage has warmed up.

    `clusters` of the baseline's users and `target_clusters` of the target's are for sticky allocation only, where
    requests of a user depend on each other: sums from the start to the end of this minute, or of an earlier one,
    never of a later one. They weigh the minutes after this one.
    """

    minute: int
    stage: int
    weight: int
    target: ArmCounts
    baseline: ArmCounts
    clusters: Mapping[Metric, ClusterSums] = field(default_factory=dict)
    target_clusters: Mapping[Metric, ClusterSums] = field(default_factory=dict)
    settling: bool = False


SUMS = (
    "requests",
    "unanswered",
    "judged",
    "errors",
    "answered",
    "contract",
    "truncated",
    "fallback",
    "empty",
    "stopped",
    "uncompared",
    "uncompared_unanswered",
)
"""The numbers of requests that `ArmCounts` of several minutes and `state.ArmTotals` add up."""

sums_of: Callable[[Any], tuple[int, ...]] = attrgetter(*SUMS)


def combined(one: Any, other: Any, how: Callable[[int, int], int] = add) -> dict[str, Any]:
    """Returns the `SUMS` of two counts or totals, added up or combined in another way, by name."""
    return dict(zip(SUMS, map(how, sums_of(one), sums_of(other)), strict=True))


_EVENTS: Mapping[Metric, Callable[[Any], tuple[int, int]]] = {
    Metric.UNANSWERED: attrgetter("unanswered", "requests"),
    Metric.ERROR_RATE: attrgetter("errors", "judged"),
    Metric.STOPPED: attrgetter("stopped", "requests"),
    **{metric: attrgetter(metric.value, "answered") for metric in EXACT},
}


def events_of(arm: Any, metric: Metric) -> tuple[int, int]:
    """Returns the number of events of a rate in an arm's counts or totals, and of the requests they are counted
    among."""
    return _EVENTS[metric](arm)
