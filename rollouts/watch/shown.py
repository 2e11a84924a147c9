"""The watch at 100 % as the API and the pages show it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from rollouts.evaluation import Metric, from_json
from rollouts.evaluation.explanation import LABELS
from rollouts.models import Rollout, RolloutWatch
from rollouts.watch.comparison import Compared
from rollouts.watch.hours import LASTS, Before, Hour

CONFIDENCE = 0.95

_COST_UNIT = 1e-10


@dataclass(frozen=True, slots=True)
class Warned:
    """A target that does worse at 100 % than the baseline did: the metrics, and the time of the first warning."""

    rollout_id: UUID
    name: str
    metrics: tuple[Metric, ...]
    at: datetime


def watch_shown(rollout: Rollout) -> dict[str, Any] | None:
    """Returns the watch, or None while the target does not get all of the traffic."""
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
        "request_count": sum(
            hour.sums[Metric.UNANSWERED].requests for hour in (from_json(Hour, one) for one in watch.hours)
        ),
        "metrics": dict(_metrics(watch)),
    }


def warned_watches(project_id: UUID, *, limit: int) -> list[Warned]:
    """Returns the watches of the project that warned and go on, the latest first."""
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
            tuple(metric for metric in Metric if metric.value in warned_at),
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
        names = ", ".join(label.lower() for metric, label in LABELS.items() if metric.value in watch.warned_at)
        return (
            f"{target.capitalize()} does worse than {baseline} did in the week before: {names}. Nothing was changed;"
            " decide whether the version or something else is the cause."
        )
    if not watch.figures:
        return f"Nothing is known yet: {target} is compared once it has 100 requests and three hours have closed."
    return f"{target.capitalize()} does not do worse than {baseline} did in the week before."


def _metrics(watch: RolloutWatch) -> Iterator[tuple[str, dict[str, Any]]]:
    """Returns the metrics in order, because databases sort the members of objects."""
    for metric in Metric:
        if metric.value not in watch.figures:
            continue
        one = from_json(Compared, watch.figures[metric.value])
        unit = _COST_UNIT if metric is Metric.COST else 1.0
        yield (
            metric.value,
            {
                "value": one.value * unit,
                "before": one.before * unit,
                "difference": one.difference * unit,
                "interval": {"low": one.low * unit, "high": one.high * unit, "confidence": CONFIDENCE},
                "warned_at": watch.warned_at.get(metric.value),
            },
        )
