"""The input of an evaluation: a window of minutes, and the usual values of the day before the rollout's start."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from analytics.queries.variants import UsualValues, usual_values
from rollouts.evaluation.statistics.grid import LOG_RATIO, Histogram
from rollouts.models import Rollout

USUAL = timedelta(days=1)
"""The time before the start from which usual values are taken."""


@dataclass(frozen=True, slots=True)
class Window:
    """The whole minutes from `start` up to, not including, `end`, of a rollout that began in the minute `began`."""

    began: datetime
    start: datetime
    end: datetime


def usual_before(rollout: Rollout) -> UsualValues:
    """Returns the baseline's latencies and costs by bin in the day before the start, and how many of the config's
    requests went unanswered. Raises AnalyticsUnavailableError."""
    if rollout.started_at is None:
        return UsualValues()
    usual = usual_values(
        rollout.project_id,
        rollout.config_id,
        rollout.baseline_version.number,
        rollout.started_at - USUAL,
        rollout.started_at,
        log_ratio=LOG_RATIO,
    )
    return replace(usual, latency=ordered(usual.latency), cost=ordered(usual.cost))


def ordered(histogram: Histogram) -> Histogram:
    """Returns the histogram in order of its bins. Databases sort the members of an object, and a sum in another
    order differs in its last digit."""
    return dict(sorted(histogram.items()))
