"""The hours of the baseline and of the target, from the request log and from online evaluations."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from analytics.online_evaluations.hourly import HourOfScores, ScoredVersion, hourly_scores, score_sources
from analytics.online_evaluations.score_source import ScoreSource
from analytics.queries.variants.by_hour import HourSums, ValueLimits, Version, hour_sums, usual_of
from analytics.queries.variants.outcomes import LONG_WAIT_MS
from rollouts.evaluation import Metric
from rollouts.evaluation.statistics.grid import LOG_RATIO, value_of
from rollouts.evaluation.statistics.reference import Reference, reference_from
from rollouts.models import Rollout
from rollouts.verdicts.minutes import ordered
from rollouts.watch.hours import Before, Hour, Sums

_WEEK = timedelta(days=7)
_HOUR_SECONDS = 3600
_SCORES_COME_WITHIN = timedelta(hours=26)
"""How long after its request a score may come: users have a day for theirs."""


def read_before(rollout: Rollout, since: datetime) -> Before:
    """Returns the week of the baseline that ended at `since`. Raises AnalyticsUnavailableError and
    AnalyticsLimitError."""
    version = Version(rollout.project_id, rollout.config_id, rollout.baseline_version.number)
    start = since - _WEEK
    usual = usual_of(version, start, since, log_ratio=LOG_RATIO)
    latency, cost = reference_from(ordered(usual.latency)), reference_from(ordered(usual.cost))
    scored = ScoredVersion(rollout.project_id, rollout.config_id, version.number, start, since)
    scores = tuple(score_sources(scored))
    hours = _with_scores(_hours(version, start, since, latency, cost), scored, scores)
    return Before(hours, latency, cost, scores)


def read_since(
    rollout: Rollout, before: Before, known: Sequence[Hour], since: datetime, start: datetime, end: datetime
) -> tuple[Hour, ...]:
    """Returns the hours of the target since it gets all of the traffic: those that are known, with the scores that have
    come meanwhile, and those from `start` up to, not including, `end`. Raises AnalyticsUnavailableError and
    AnalyticsLimitError."""
    version = Version(rollout.project_id, rollout.config_id, rollout.target_version.number)
    hours = (*known, *_hours(version, start, end, before.latency, before.cost))
    scored_from = max(since, start - _SCORES_COME_WITHIN)
    scored = ScoredVersion(rollout.project_id, rollout.config_id, version.number, scored_from, end)
    return _with_scores(hours, scored, before.scores)


def _with_scores(hours: Iterable[Hour], scored: ScoredVersion, sources: Iterable[ScoreSource]) -> tuple[Hour, ...]:
    """Returns the hours with the scores of this time in place of those that they had of it. The hour in which the time
    starts keeps its own, unless all of it belongs to the time."""
    first = math.ceil(scored.start.timestamp() / _HOUR_SECONDS)
    found = {one.hour: replace(one, losses={}) if one.hour >= first else one for one in hours}
    for source, scores in hourly_scores(scored, sources).items():
        for scored_hour in scores:
            number = int(scored_hour.began_at.timestamp()) // _HOUR_SECONDS
            if number >= first:
                hour = found.get(number, Hour(number))
                found[number] = replace(hour, losses={**hour.losses, source.title: _loss(scored_hour)})
    return tuple(found[number] for number in sorted(found))


def _loss(scores: HourOfScores) -> Sums:
    """Returns what the scores lack to 1."""
    squares = scores.number - 2 * scores.total + scores.squares
    return Sums(scores.number, scores.number - scores.total, max(0.0, squares))


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
