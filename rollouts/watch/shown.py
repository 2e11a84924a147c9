from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from rollouts.evaluation import Metric, from_json
from rollouts.evaluation.explanation import LABELS
from rollouts.models import Rollout, RolloutWatch
from rollouts.shapes import interval
from rollouts.watch.comparison import Compared
from rollouts.watch.hours import LASTS, Before, Hour, request_count

_COST_UNIT = 1e-10


@dataclass(frozen=True, slots=True)
class Warned:
    rollout_id: UUID
    name: str
    worse_in: tuple[str, ...]
    at: datetime


def watch_shown(rollout: Rollout) -> dict[str, Any] | None:
    watch = RolloutWatch.objects.filter(pk=rollout.pk).first()
    if watch is None:
        return None
    before = from_json(Before, watch.before)
    return {
        "state": _state(watch, before),
        "explanation": _explanation(rollout, watch, before),
        "since": watch.since,
        "through": watch.through if before.is_enough else None,
        "until": rollout.ended_at + LASTS if rollout.ended_at else None,
        "ended_at": watch.ended_at,
        "baseline_request_count": before.requests,
        "request_count": request_count(from_json(Hour, one) for one in watch.hours),
        "metrics": _compared(watch, ((one.value, _COST_UNIT if one is Metric.COST else 1.0, 0.0) for one in Metric)),
        # Scores were compared by what they lack to the best one.
        "scores": _compared(watch, ((one.title, -1.0, 1.0) for one in before.scores)),
    }


def labels_of(names: Iterable[str]) -> tuple[str, ...]:
    given = set(names)
    metrics = [label.lower() for metric, label in LABELS.items() if metric.value in given]
    titles = given - {metric.value for metric in Metric}
    return (*metrics, *(f"scores of {title}" for title in sorted(titles)))


def warned_watches(project_id: UUID, *, limit: int) -> list[Warned]:
    rows = (
        RolloutWatch.objects.filter(rollout__project_id=project_id, ended_at__isnull=True)
        .exclude(warned_at={})
        .order_by("-since")
        .values_list("rollout_id", "rollout__name", "warned_at")
    )
    return [
        Warned(
            rollout_id,
            name,
            labels_of(warned_at),
            min(map(datetime.fromisoformat, warned_at.values())),
        )
        for rollout_id, name, warned_at in rows[:limit]
    ]


def _state(watch: RolloutWatch, before: Before) -> str:
    if not before.is_enough:
        return "silent"
    return "warned" if watch.warned_at else "watching"


def _explanation(rollout: Rollout, watch: RolloutWatch, before: Before) -> str:
    baseline, target = f"version {rollout.baseline_version.number}", f"version {rollout.target_version.number}"
    if not before.is_enough:
        return (
            f"Nothing can be compared: in the week before, {baseline} had {before.requests:,} requests within"
            f" {before.span} hours, and 1,000 requests or three days are needed."
        )
    if watch.warned_at:
        names = ", ".join(labels_of(watch.warned_at))
        return (
            f"{target.capitalize()} does worse than {baseline} did in the week before: {names}. Nothing was changed;"
            " decide whether the version or something else is the cause."
        )
    if not watch.figures:
        return f"Nothing is known yet: {target} is compared once it has 100 requests and three hours have closed."
    return f"{target.capitalize()} does not do worse than {baseline} did in the week before."


def _compared(watch: RolloutWatch, units: Iterable[tuple[str, float, float]]) -> dict[str, dict[str, Any]]:
    """Keeps the order of names, because databases sort the members of objects. A value is shown in its unit, from its
    origin on."""
    return {
        name: _shown(from_json(Compared, watch.figures[name]), unit, origin, watch.warned_at.get(name))
        for name, unit, origin in units
        if name in watch.figures
    }


def _shown(one: Compared, unit: float, origin: float, warned_at: str | None) -> dict[str, Any]:
    low, high = sorted((one.low * unit, one.high * unit))
    return {
        "value": origin + one.value * unit,
        "before": origin + one.before * unit,
        "difference": one.difference * unit,
        "interval": interval(low, high),
        "warned_at": warned_at,
    }
