"""The minutes in which a stage settles: the first ones after it began to run, at its entry or after a pause."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from rollouts.models import Rollout, RolloutStage, RolloutTransition
from rollouts.states import Status

Settling = Callable[[int, int], bool]
"""Returns whether a stage settles in a minute. Takes the minute, which is Unix time divided by 60, and the stage."""


@dataclass(frozen=True, slots=True)
class _Run:
    """A time in which a stage ran without a pause; `ended` is None while it does."""

    stage: int
    began: datetime
    ended: datetime | None


def settling_of(rollout: Rollout, stages: Mapping[int, RolloutStage]) -> Settling:
    """Returns the function that says when these stages of the rollout settle."""
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
    """Returns how long the stage had been running when the minute began. The clock begins anew after a pause, in which
    caches go cold, and stands still while the stage does not run, so that late rows are taken for those of its end."""
    start, end = (datetime.fromtimestamp(60 * one, UTC) for one in (minute, minute + 1))
    began = [run for run in runs if run.stage == stage and run.began < end]
    if not began:
        # The store's clock is behind that of the host that moved the rollout.
        return timedelta()
    return min(start, began[-1].ended or start) - began[-1].began
