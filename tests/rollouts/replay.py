"""Reaches a stored verdict again from the state at the start and the stored minutes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.utils import timezone

from analytics.online_evaluations.ended import ended_tasks
from rollouts.evaluation import MinuteCounts, State, from_json, replay
from rollouts.evaluation.quality import Basis, QualityMinute, QualityState, replay_quality
from rollouts.models import Rollout, RolloutMinute, RolloutQuality, RolloutQualityMinute
from rollouts.quality.entries import evaluators_of
from rollouts.verdicts.figures import verdict_at, verdict_figures
from rollouts.verdicts.quality.minutes import minutes_of
from rollouts.verdicts.quality.reading import QualityReading


def replayed_state(rollout: Rollout, until: datetime | None = None) -> State:
    """Returns the state after the minutes before `until`, or after all."""
    rows = RolloutMinute.objects.filter(rollout=rollout).order_by("minute", "stage")
    if until is not None:
        rows = rows.filter(minute__lt=until)
    minutes = [from_json(MinuteCounts, counts) for counts in rows.values_list("counts", flat=True)]
    return replay(from_json(State, rollout.evaluation.initial), minutes)


def replayed_figures(rollout: Rollout, figures: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the figures of a verdict that is reached again: equal to `figures` unless rows changed."""
    through = datetime.fromisoformat(figures["through"])
    state = replayed_state(rollout, through)
    stage, elapsed = rollout.stages.get(number=figures["stage"]), figures["elapsed_minutes"]
    quality = replayed_quality(rollout, figures["quality"]["through"]) if "quality" in figures else None
    verdict = verdict_at(state, stage, elapsed_minutes=elapsed, quality=quality.state if quality else None)
    return verdict_figures(
        state,
        verdict,
        stage,
        elapsed_minutes=elapsed,
        through=through,
        earlier_rollbacks=figures.get("earlier_rollbacks", 0),
        segments=figures.get("segments", ()),
        quality=quality,
    )


def minutes_of_tasks(rollout: Rollout, through: datetime) -> list[QualityMinute]:
    """Returns the minutes before `through` that follow from the tasks alone: those of random allocation, up to what was
    said of judges that drifted."""
    assert rollout.started_at is not None
    began = rollout.started_at.replace(second=0, microsecond=0)
    evaluators = evaluators_of(rollout)
    found: list[QualityMinute] = []
    for basis in Basis:
        titles = {one.version_id: one.title for one in evaluators if one.statistics.basis is basis}
        with_labels = basis is Basis.LABELS
        ended = ended_tasks(rollout.pk, titles, began, through, with_labels=with_labels, now=timezone.now())
        found += minutes_of(basis, ended.tasks, titles, None)
    return found


def replayed_quality(rollout: Rollout, through: Mapping[str, str]) -> QualityReading:
    """Returns the evaluators after the stored minutes before `through`, by basis."""
    row = RolloutQuality.objects.get(pk=rollout.pk)
    until = {Basis(basis): datetime.fromisoformat(time) for basis, time in through.items()}
    rows = RolloutQualityMinute.objects.filter(rollout=rollout)
    tasks = [one for basis, end in until.items() for one in rows.filter(basis=basis, minute__lt=end)]
    minutes = [from_json(QualityMinute, one.tasks) for one in tasks]
    initial = from_json(QualityState, row.initial)
    return QualityReading(
        evaluators=evaluators_of(rollout),
        initial=initial,
        state=replay_quality(initial, minutes),
        minutes=tuple(minutes),
        through=until,
        users={},
        calibrated_at={},
    )
