"""The minutes of a rollout that were judged, and the values of the day before it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from analytics.queries.variants import usual_values
from rollouts.evaluation import MinuteCounts, from_json
from rollouts.evaluation.statistics.grid import LOG_RATIO, Histogram
from rollouts.models import Rollout, RolloutMinute

USUAL = timedelta(days=1)
"""The time before the start from which the baseline's usual latency and cost are taken."""


@dataclass(frozen=True, slots=True)
class Window:
    """The whole minutes from `start` up to, not including, `end`, of a rollout that began in the minute `began`."""

    began: datetime
    start: datetime
    end: datetime


def usual_histograms(rollout: Rollout) -> tuple[Histogram, Histogram]:
    """Returns the baseline's latencies and costs by bin in the day before the start. Raises
    AnalyticsUnavailableError."""
    if rollout.started_at is None:
        return {}, {}
    usual = usual_values(
        rollout.project_id,
        rollout.config_id,
        rollout.baseline_version.number,
        rollout.started_at - USUAL,
        rollout.started_at,
        log_ratio=LOG_RATIO,
    )
    return ordered(usual.latency), ordered(usual.cost)


def stored_minutes(rollout: Rollout, until: datetime | None = None) -> Iterator[MinuteCounts]:
    """Returns the minutes that the evaluation stored, in order."""
    rows = RolloutMinute.objects.filter(rollout=rollout).order_by("minute", "stage")
    if until is not None:
        rows = rows.filter(minute__lt=until)
    for counts in rows.values_list("counts", flat=True).iterator():
        yield from_json(MinuteCounts, counts)


def ordered(histogram: Histogram) -> Histogram:
    """Returns the histogram in order of its bins. Databases sort the members of an object, and a sum in another
    order differs in its last digit."""
    return dict(sorted(histogram.items()))
