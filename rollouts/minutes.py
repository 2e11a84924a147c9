"""The closed minutes of a rollout: from its own rows and, for the first formula, from the request log by the time of
arrival. The module `recorded` reads them for the second formula."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from analytics.queries.variants import BASELINE, TARGET, usual_values
from analytics.queries.variants.by_arrival import ArmMinute, arm_minutes, new_units, unit_sums
from analytics.queries.variants.units import UnitLimits, UnitSums
from rollouts.allocation import AllocationType
from rollouts.evaluation import formula_of, from_json
from rollouts.evaluation.clusters import ClusterSums
from rollouts.evaluation.formula_1 import ArmCounts, Metric, MinuteCounts, State
from rollouts.evaluation.grid import LOG_RATIO, Histogram
from rollouts.evaluation.reference import Reference
from rollouts.models import Rollout, RolloutMinute, RolloutStage

USUAL = timedelta(days=1)
"""The time before the start from which the baseline's usual latency and cost are taken."""

_MEASURED = {
    "errors": Metric.ERROR_RATE,
    "slow": Metric.LATENCY_P95,
    "latency": Metric.LATENCY_AVERAGE,
    "cost": Metric.COST,
}
# These bounds exceed every latency and cost, so that without a reference no value is cut or counts as slow.
NO_CAP = 1e18
NO_BIN = 2**31

Arms = Mapping[str, ArmCounts]


@dataclass(frozen=True, slots=True)
class Window:
    """The whole minutes from `start` up to, not including, `end`, of a rollout that began in the minute `began`."""

    began: datetime
    start: datetime
    end: datetime


def closed_minutes(
    rollout: Rollout, stages: Mapping[int, RolloutStage], window: Window, state: State
) -> tuple[MinuteCounts, ...]:
    """Returns the window's minutes in the order in which `advance` takes them. Raises AnalyticsUnavailableError.

    A worker may still serve a stage for a second after it was left. Its minutes after that are dropped: a state that
    went back to that stage would forget the counts of the next one.
    """
    rows = arm_minutes(rollout.project_id, rollout.pk, window.start, window.end, log_ratio=LOG_RATIO)
    if not rows:
        return ()
    sticky = rollout.allocation_type != AllocationType.RANDOM
    units = _units(rollout, window) if sticky else {(r.minute, r.stage, r.variant): r.allocated for r in rows}
    clusters = _clusters(rollout, window, state) if sticky else {}
    return tuple(
        MinuteCounts(minute, stage, stages[stage].weight, arms[TARGET], arms[BASELINE], clusters)
        for (minute, stage), arms in _onwards(_arms(rows, units).items(), state.stage)
        if stage in stages
    )


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


def stored_minutes(rollout: Rollout, formula: int, until: datetime | None = None) -> Iterator[Any]:
    """Returns the minutes that the evaluation stored, in order, as `MinuteCounts` of its formula."""
    rows = RolloutMinute.objects.filter(rollout=rollout).order_by("minute", "stage")
    if until is not None:
        rows = rows.filter(minute__lt=until)
    for counts in rows.values_list("counts", flat=True).iterator():
        yield from_json(formula_of(formula).MinuteCounts, counts)


def _arms(
    rows: Iterable[ArmMinute], units: Mapping[tuple[int, int, str], int]
) -> dict[tuple[int, int], dict[str, ArmCounts]]:
    """Returns the counts of both arms by minute and stage, in this order."""
    found: dict[tuple[int, int], dict[str, ArmCounts]] = {}
    for row in rows:
        arms = found.setdefault((row.minute, row.stage), {TARGET: ArmCounts(), BASELINE: ArmCounts()})
        arms[row.variant] = ArmCounts(
            requests=row.requests,
            errors=row.errors,
            units=units.get((row.minute, row.stage, row.variant), 0),
            latency=ordered(row.latency),
            latency_ms=row.latency_ms,
            cost=ordered(row.cost),
            cost_usd=row.cost_usd,
        )
    return dict(sorted(found.items()))


def ordered(histogram: Histogram) -> Histogram:
    """Returns the histogram in order of its bins. Databases sort the members of an object, and a sum in another
    order differs in its last digit."""
    return dict(sorted(histogram.items()))


def _onwards(minutes: Iterable[tuple[tuple[int, int], Arms]], stage: int) -> Iterator[tuple[tuple[int, int], Arms]]:
    for (minute, at), arms in minutes:
        if at >= stage:
            stage = at
            yield (minute, at), arms


def _units(rollout: Rollout, window: Window) -> dict[tuple[int, int, str], int]:
    first = int(window.start.timestamp()) // 60
    rows = new_units(rollout.project_id, rollout.pk, window.began, window.end, since=first)
    return {(row.minute, row.stage, row.variant): row.units for row in rows}


def _clusters(rollout: Rollout, window: Window, state: State) -> dict[Metric, ClusterSums]:
    """Returns the cluster sums at the end of the window, for all its minutes; usually it is one minute."""
    limits = unit_limits(state.latency.reference, state.cost.reference)
    sums = unit_sums(rollout.project_id, rollout.pk, window.began, window.end, limits=limits, log_ratio=LOG_RATIO)
    return {_MEASURED[name]: cluster(found) for name, found in sums.items()}


def unit_limits(latency: Reference | None, cost: Reference | None) -> UnitLimits:
    return UnitLimits(
        latency_cap_ms=latency.cap if latency else NO_CAP,
        slow_bin=latency.slow_bin if latency else NO_BIN,
        cost_cap=cost.cap if cost else NO_CAP,
    )


def cluster(sums: UnitSums) -> ClusterSums:
    return ClusterSums(
        requests=sums.requests,
        requests_squared=sums.requests_squared,
        total=sums.total,
        total_squared=sums.total_squared,
        cross=sums.cross,
        values_squared=sums.values_squared,
    )
