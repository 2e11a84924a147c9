"""The watch over targets with all of the traffic: every closed hour is compared with the baseline's last week. A
warning is kept, logged and announced once, and changes nothing else."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from analytics.clickhouse.visible import visible_until
from analytics.online_evaluations.hourly import HourOfScores, ScoredVersion, ScoreSource, hourly_scores, score_sources
from analytics.queries.variants.by_hour import HourSums, ValueLimits, Version, hour_sums, usual_of
from analytics.queries.variants.outcomes import LONG_WAIT_MS
from rollouts.evaluation import Action, Metric, from_json, to_json
from rollouts.evaluation.counts import events_of
from rollouts.evaluation.policy import RATES
from rollouts.evaluation.statistics.grid import LOG_RATIO, value_of
from rollouts.evaluation.statistics.reference import Reference, reference_from
from rollouts.models import Rollout, RolloutStage, RolloutWatch
from rollouts.signals import watch_warned
from rollouts.states import TERMINAL, Status
from rollouts.verdicts.evaluate import closed_until, each_in_turn
from rollouts.verdicts.minutes import ordered
from rollouts.verdicts.policies import policy_of
from rollouts.watch.comparison import Compared, Week, compared, subject_of, subject_of_scores
from rollouts.watch.hours import LASTS, WATCHED, Before, Hour, Sums

logger = logging.getLogger("rollouts")


_WEEK = timedelta(days=7)
_HOUR_SECONDS = 3600
_SCORES_COME_WITHIN = timedelta(hours=26)
"""How long after its request a score may come: users have a day for theirs."""


def read_before(rollout: Rollout, since: datetime) -> Before:
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
    """Returns the known hours, updated with scores that arrived meanwhile, and those from `start` to `end`, exclusive.
    Raises AnalyticsUnavailableError and AnalyticsLimitError."""
    version = Version(rollout.project_id, rollout.config_id, rollout.target_version.number)
    hours = (*known, *_hours(version, start, end, before.latency, before.cost))
    scored_from = max(since, start - _SCORES_COME_WITHIN)
    scored = ScoredVersion(rollout.project_id, rollout.config_id, version.number, scored_from, end)
    return _with_scores(hours, scored, before.scores)


def _with_scores(hours: Iterable[Hour], scored: ScoredVersion, sources: Iterable[ScoreSource]) -> tuple[Hour, ...]:
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
    found: dict[Metric, Sums] = {metric: _rate(*events_of(row, metric)) for metric in WATCHED if metric in RATES}
    if has_latency:
        found[Metric.LATENCY_P95] = _rate(row.slow, row.answered)
        found[Metric.LATENCY_AVERAGE] = Sums(row.answered, row.latency, row.latency_squares)
    if has_cost:
        found[Metric.COST] = Sums(row.priced, row.cost, row.cost_squares)
    return found


def _rate(events: int, requests: int) -> Sums:
    return Sums(requests, float(events), float(events))


def watch_rollouts() -> None:
    now = timezone.now()
    rows = {rollout.pk: rollout for rollout in watched_rollouts(now)}
    for _ in each_in_turn(rows, lambda pk: _watch(rows[pk], now), failed="rollout.watch_failed"):
        pass


def watched_rollouts(now: datetime) -> QuerySet[Rollout]:
    alone = RolloutStage.objects.filter(weight=100, number=F("rollout__current_stage")).values("rollout_id")
    found = Rollout.objects.filter(
        Q(status=Status.RUNNING.value, pk__in=alone)
        | Q(status=Status.COMPLETED.value, ended_at__gt=now - LASTS, watch__isnull=True)
        | Q(status__in=[one.value for one in TERMINAL], watch__isnull=False, watch__ended_at__isnull=True)
    )
    versions = ("config", "baseline_version", "target_version")
    return found.select_related("watch", *versions).order_by(F("watch__through").asc(nulls_first=True), "pk")


def _watch(rollout: Rollout, now: datetime) -> None:
    if not _is_served(rollout):
        RolloutWatch.objects.filter(pk=rollout.pk).update(ended_at=now)
        return
    watch = getattr(rollout, "watch", None) or _begun(rollout)
    until = rollout.ended_at + LASTS if rollout.ended_at else None
    if until is not None and watch.through >= until:
        RolloutWatch.objects.filter(pk=rollout.pk).update(ended_at=now)
        return
    if _hour(closed_until(now)) <= watch.through:
        return
    closed = _hour(min(closed_until(now), visible_until()))
    end = min(closed, until) if until else closed
    if end > watch.through:
        _look(rollout, watch, end)


def _look(rollout: Rollout, watch: RolloutWatch, end: datetime) -> None:
    before = from_json(Before, watch.before)
    hours = [from_json(Hour, one) for one in watch.hours]
    if before.is_enough:
        hours = list(read_since(rollout, before, hours, watch.since, watch.through, end))
    _save(rollout, watch, before, hours, end)


def _is_served(rollout: Rollout) -> bool:
    if rollout.status == Status.COMPLETED:
        return rollout.config.active_version_id == rollout.target_version_id
    return rollout.status != Status.ROLLED_BACK


def _begun(rollout: Rollout) -> RolloutWatch:
    last = rollout.stages.filter(weight=100, entered_at__isnull=False).first()
    since = (last.entered_at if last else rollout.ended_at) or timezone.now()
    before = read_before(rollout, since)
    watch, _ = RolloutWatch.objects.get_or_create(
        rollout=rollout, defaults={"since": since, "through": since, "before": to_json(before)}
    )
    return watch


def _hour(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def _save(rollout: Rollout, seen: RolloutWatch, before: Before, hours: Sequence[Hour], end: datetime) -> None:
    found = _compared(rollout, before, hours)
    policy = policy_of(rollout)
    ignored = {metric.value for metric in WATCHED if policy.action(metric) is Action.IGNORE}
    with transaction.atomic():
        watch = RolloutWatch.objects.select_for_update().get(pk=seen.pk)
        if watch.through != seen.through:
            return
        worse = [
            name for name, one in found.items() if one.is_worse and name not in watch.warned_at and name not in ignored
        ]
        watch.hours, watch.through = [to_json(one) for one in hours], end
        watch.figures = {name: to_json(one) for name, one in found.items()}
        watch.warned_at = {**watch.warned_at, **{name: end.isoformat() for name in worse}}
        watch.save()
        if worse:
            watch_warned.send(sender=Rollout, rollout=rollout, names=worse, at=end)
    for name in worse:
        logger.warning(
            "rollout.watch_warned project_id=%s rollout_id=%s metric=%s",
            rollout.project_id,
            rollout.pk,
            "_".join(name.split()),
        )


def _compared(rollout: Rollout, before: Before, hours: Sequence[Hour]) -> Mapping[str, Compared]:
    policy = policy_of(rollout)
    subjects = [
        *(subject_of(metric, policy) for metric in WATCHED),
        *(subject_of_scores(one.title, of=len(before.scores)) for one in before.scores),
    ]
    found: dict[str, Compared] = {}
    for subject in subjects:
        week = Week.of(before.hours, subject)
        one = compared(week, hours) if week else None
        if one is not None:
            found[subject.name] = one
    return found
