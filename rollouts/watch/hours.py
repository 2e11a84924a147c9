from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from analytics.online_evaluations.hourly import ScoreSource
from rollouts.evaluation import Metric
from rollouts.evaluation.statistics.reference import Reference

LASTS = timedelta(days=7)
"""The time for which the watch goes on after the rollout has completed."""

_MIN_HOURS, _MIN_REQUESTS = 72, 1000
"""The time or the requests of the baseline that a comparison needs."""

WATCHED = tuple(metric for metric in Metric if metric is not Metric.STOPPED)


@dataclass(frozen=True, slots=True)
class Sums:
    """Requests of one metric in one hour: their number, the sum of their values and of the squares.

    A value is 1 or 0 for a rate and for a request slower than the usual 95th percentile, else a latency in ms or a cost
    in 10^-10 US dollars, cut at the usual 99th percentile.
    """

    requests: int = 0
    total: float = 0.0
    squares: float = 0.0


@dataclass(frozen=True, slots=True)
class Hour:
    hour: int
    sums: Mapping[Metric, Sums] = field(default_factory=dict)
    # What the scores of requests lack to the best one, by title of the evaluator.
    losses: Mapping[str, Sums] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Before:
    """The baseline's last week before the target got all of the traffic. Without a reference there were too few answers
    or prices, and latency or cost is not watched. `scores` are those that the baseline had."""

    hours: tuple[Hour, ...] = ()
    latency: Reference | None = None
    cost: Reference | None = None
    scores: tuple[ScoreSource, ...] = ()

    @property
    def requests(self) -> int:
        return request_count(self.hours)

    @property
    def span(self) -> int:
        return self.hours[-1].hour - self.hours[0].hour + 1 if self.hours else 0

    @property
    def is_enough(self) -> bool:
        return self.span >= _MIN_HOURS or self.requests >= _MIN_REQUESTS


def request_count(hours: Iterable[Hour]) -> int:
    return sum(one.sums[Metric.UNANSWERED].requests for one in hours if Metric.UNANSWERED in one.sums)
