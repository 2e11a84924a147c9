"""The hours of the baseline and of the target from the request log."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from analytics.queries.variants.by_hour import HourSums, ValueLimits, Version, hour_sums, usual_of
from analytics.queries.variants.outcomes import LONG_WAIT_MS
from rollouts.evaluation import Metric
from rollouts.evaluation.statistics.grid import LOG_RATIO, value_of
from rollouts.evaluation.statistics.reference import Reference, reference_from
from rollouts.models import Rollout
from rollouts.verdicts.minutes import ordered
from rollouts.watch.hours import Before, Hour, Sums

_WEEK = timedelta(days=7)


def read_before(rollout: Rollout, since: datetime) -> Before:
    """Returns the week of the baseline that ended at `since`. Raises AnalyticsUnavailableError and
    AnalyticsLimitError."""
    version = Version(rollout.project_id, rollout.config_id, rollout.baseline_version.number)
    start = since - _WEEK
    usual = usual_of(version, start, since, log_ratio=LOG_RATIO)
    latency, cost = reference_from(ordered(usual.latency)), reference_from(ordered(usual.cost))
    return Before(_hours(version, start, since, latency, cost), latency, cost)


def read_since(rollout: Rollout, before: Before, start: datetime, end: datetime) -> tuple[Hour, ...]:
    """Returns the hours of the target from `start` up to, not including, `end`. Raises AnalyticsUnavailableError and
    AnalyticsLimitError."""
    version = Version(rollout.project_id, rollout.config_id, rollout.target_version.number)
    return _hours(version, start, end, before.latency, before.cost)


def _hours(
    version: Version, start: datetime, end: datetime, latency: Reference | None, cost: Reference | None
) -> tuple[Hour, ...]:
    limits = ValueLimits(
        slow_bin=latency.slow_bin if latency else 0,
        latency_cap_ms=latency.cap if latency else 0.0,
        cost_cap=cost.cap if cost else 0.0,
    )
    long_wait_ms = value_of(latency.slow_bin) if latency else LONG_WAIT_MS
    rows = hour_sums(version, start, end, limits=limits, long_wait_ms=long_wait_ms, log_ratio=LOG_RATIO)
    return tuple(Hour(row.hour, _sums(row, has_latency=bool(latency), has_cost=bool(cost))) for row in rows)


def _sums(row: HourSums, *, has_latency: bool, has_cost: bool) -> Mapping[Metric, Sums]:
    answered = row.answered
    found = {
        Metric.UNANSWERED: _rate(row.requests, row.unanswered),
        Metric.ERROR_RATE: _rate(row.judged, row.errors),
        Metric.CONTRACT: _rate(answered, row.contract),
        Metric.TRUNCATED: _rate(answered, row.truncated),
        Metric.FALLBACK: _rate(answered, row.fallback),
        Metric.EMPTY: _rate(answered, row.empty),
    }
    if has_latency:
        found[Metric.LATENCY_P95] = _rate(answered, row.slow)
        found[Metric.LATENCY_AVERAGE] = Sums(answered, row.latency, row.latency_squares)
    if has_cost:
        found[Metric.COST] = Sums(row.priced, row.cost, row.cost_squares)
    return found


def _rate(requests: int, events: int) -> Sums:
    return Sums(requests, float(events), float(events))
