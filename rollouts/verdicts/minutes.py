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
    """Sorts by bin: databases sort an object's members, and a sum in another order differs in its last digit."""
    return dict(sorted(histogram.items()))
