"""The closed minutes of a rollout: from the request log, by the time at which rows were recorded, and from the web
workers' lists of open requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from analytics.queries.variants import BASELINE, TARGET
from analytics.queries.variants.by_record import (
    Recorded,
    RecordedMinute,
    recorded_at,
    recorded_minutes,
    recorded_units,
)
from analytics.queries.variants.by_user import UnitLimits
from analytics.queries.variants.outcomes import LONG_WAIT_MS
from analytics.queries.variants.users import user_minutes
from rollouts.allocation import AllocationType
from rollouts.evaluation import ArmCounts, MinuteCounts, State, UserCounts
from rollouts.evaluation.cohort import due_look
from rollouts.evaluation.counts import SUMS, sums_of
from rollouts.evaluation.statistics.grid import LOG_RATIO, value_of
from rollouts.models import Rollout, RolloutStage, RolloutTransition
from rollouts.open_requests.lists import open_requests
from rollouts.open_requests.still_open import Counted, max_open_time, overdue, still_remembered
from rollouts.states import Status
from rollouts.verdicts.by_user import Cell, Clusters, clusters_of, cohort_of, limits_of, minute_users
from rollouts.verdicts.minutes import Window, ordered

STILL_OPEN = "still_open"


Settling = Callable[[int, int], bool]
"""Returns whether a stage settles in a minute. Takes the minute, which is Unix time divided by 60, and the stage."""


@dataclass(frozen=True, slots=True)
class _Run:
    stage: int
    began: datetime
    ended: datetime | None


def settling_of(rollout: Rollout, stages: Mapping[int, RolloutStage]) -> Settling:
    lasts = {number: timedelta(minutes=stage.settle_minutes) for number, stage in stages.items()}
    runs = _runs(rollout.transitions.order_by("id")) if any(lasts.values()) else []

    def settles(minute: int, stage: int) -> bool:
        return bool(lasts[stage]) and _has_run(runs, stage, minute) < lasts[stage]

    return settles


def _runs(transitions: Iterable[RolloutTransition]) -> list[_Run]:
    runs: list[_Run] = []
    for move in transitions:
        if runs and runs[-1].ended is None:
            runs[-1] = _Run(runs[-1].stage, runs[-1].began, move.created_at)
        if move.to_status == Status.RUNNING:
            runs.append(_Run(move.to_stage, move.created_at, None))
    return runs


def _has_run(runs: Iterable[_Run], stage: int, minute: int) -> timedelta:
    """Returns how long the stage had run when the minute began. The clock restarts after a pause, in which caches go
    cold, and stands still while the stage does not run, so that late rows belong to its end."""
    start, end = (datetime.fromtimestamp(60 * one, UTC) for one in (minute, minute + 1))
    began = [run for run in runs if run.stage == stage and run.began < end]
    if not began:
        # The store's clock is behind that of the host that moved the rollout.
        return timedelta()
    return min(start, began[-1].ended or start) - began[-1].began


@dataclass(frozen=True, slots=True)
class Reading:
    minutes: tuple[MinuteCounts, ...]
    counted_open: tuple[Counted, ...]
    rows: Recorded


def recorded_window(
    rollout: Rollout,
    stages: Mapping[int, RolloutStage],
    window: Window,
    state: State,
    *,
    remembered: Sequence[Counted],
    now: datetime | None,
) -> Reading:
    """Reads the rows recorded in the window; late rows of earlier stages get cells of their own.

    `now` is given for the latest window, so that open requests belong to its last minute; None while the evaluation
    catches up. Raises AnalyticsUnavailableError.
    """
    rows = _rows(rollout, window, state)
    remaining, new = _open(rollout, stages, window, state, remembered, now)
    # The rows are read after the open requests: a row that comes in between has a time within the window only if it
    # was seen before.
    counted = [one.request_id for one in (*remaining, *new)]
    found = recorded_minutes(rows, counted=counted, log_ratio=LOG_RATIO)
    arms = {(row.minute, row.stage, row.variant): _arm(row) for row in found if row.stage in stages}
    last = int(window.end.timestamp()) // 60 - 1
    _add_open(arms, new, last)
    clusters: Clusters = {}
    if rollout.allocation_type != AllocationType.RANDOM and arms:
        limits = limits_of(state.latency.reference, state.cost.reference, state.policy.latency_margin)
        _add_users(arms, rows, stages, limits)
        by_user = minute_users(rows, limits, remembered=remaining, new=new, minute=last)
        for cell, arm in arms.items():
            arms[cell] = replace(arm, by_user=by_user.get(cell, {}))
        clusters = clusters_of(rows, limits)
    minutes = _minutes(arms, stages, clusters, settling_of(rollout, stages))
    if clusters and minutes[-1].stage == state.stage and due_look(state, minutes[-1].minute) is not None:
        minutes = (*minutes[:-1], replace(minutes[-1], cohort=cohort_of(rows, state, limits)))
    return Reading(minutes, (*remaining, *new), rows)


def _rows(rollout: Rollout, window: Window, state: State) -> Recorded:
    usual = state.latency.reference
    return Recorded(
        rollout.project_id,
        rollout.pk,
        window.began,
        window.start,
        window.end,
        long_wait_ms=value_of(usual.slow_bin) if usual else LONG_WAIT_MS,
    )


def _open(
    rollout: Rollout,
    stages: Mapping[int, RolloutStage],
    window: Window,
    state: State,
    remembered: Sequence[Counted],
    now: datetime | None,
) -> tuple[tuple[Counted, ...], tuple[Counted, ...]]:
    new: list[Counted] = []
    if now is not None:
        usual = state.latency.reference
        new = overdue(
            open_requests(rollout.pk),
            remembered,
            now=now,
            max_open=max_open_time(usual.cap if usual else None),
            stages=stages.keys(),
        )
    arrived = {one.request_id: one.arrived for one in (*remembered, *new)}
    recorded = recorded_at(rollout.project_id, arrived)
    remaining = still_remembered(remembered, recorded, start=window.start, now=now or window.end)
    return remaining, tuple(one for one in new if one.request_id not in recorded)


def _arm(row: RecordedMinute) -> ArmCounts:
    outcomes: dict[str, Any] = dict(zip(SUMS, sums_of(row), strict=True))
    return ArmCounts(
        **outcomes,
        # Every request of random allocation is a unit; the units of sticky allocation are counted separately.
        units=row.allocated,
        latency=ordered(row.latency),
        latency_ms=row.latency_ms,
        cost=ordered(row.cost),
        cost_usd=row.cost_usd,
        latency_read=ordered(row.latency_read),
        cost_read=ordered(row.cost_read),
        reasons=dict(sorted(row.reasons.items())),
        left_out=dict(sorted(row.left_out.items())),
    )


def _add_open(arms: dict[Cell, ArmCounts], new: Iterable[Counted], minute: int) -> None:
    for one in new:
        cell = (minute, one.stage, one.variant)
        arm = arms.get(cell, ArmCounts())
        reasons = {**arm.reasons, STILL_OPEN: arm.reasons.get(STILL_OPEN, 0) + 1}
        arms[cell] = replace(
            arm,
            requests=arm.requests + 1,
            unanswered=arm.unanswered + 1,
            units=arm.units + 1,
            reasons=dict(sorted(reasons.items())),
        )


def _add_users(
    arms: dict[Cell, ArmCounts], rows: Recorded, stages: Mapping[int, RolloutStage], limits: UnitLimits
) -> None:
    units = {(row.minute, row.stage, row.variant): row.units for row in recorded_units(rows)}
    before = [0, *(stages[number].weight for number in sorted(stages))][: len(stages)]
    users: dict[Cell, dict[str, Any]] = {}
    for row in user_minutes(rows, weights_before=before, slow_bin=limits.slow_bin, log_ratio=LOG_RATIO):
        users.setdefault((row.minute, row.stage, row.variant), {})[row.metric] = ordered(row.users)
    for cell, arm in arms.items():
        arms[cell] = replace(arm, units=units.get(cell, 0), users=UserCounts(**users.get(cell, {})))


def _minutes(
    arms: Mapping[Cell, ArmCounts], stages: Mapping[int, RolloutStage], clusters: Clusters, settling: Settling
) -> tuple[MinuteCounts, ...]:
    places = sorted({(minute, stage) for minute, stage, _ in arms})
    return tuple(
        MinuteCounts(
            minute,
            stage,
            stages[stage].weight,
            arms.get((minute, stage, TARGET), ArmCounts()),
            arms.get((minute, stage, BASELINE), ArmCounts()),
            clusters.get(BASELINE, {}) if (minute, stage) == places[-1] else {},
            clusters.get(TARGET, {}) if (minute, stage) == places[-1] else {},
            settling(minute, stage),
        )
        for minute, stage in places
    )
