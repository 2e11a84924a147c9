from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from core.ui.pages import Visit
from rollouts.comparison.tables import change, figure
from rollouts.evaluation import Metric
from rollouts.evaluation.explanation import LABELS
from rollouts.models import Rollout, RolloutWatch
from rollouts.watch.shown import watch_shown


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    warned_at: datetime | None
    value: str
    before: str
    difference: str
    interval: str


def is_watched(row: Rollout) -> bool:
    return RolloutWatch.objects.filter(pk=row.pk).exists()


def watch(visit: Visit, row: Rollout) -> Mapping[str, Any]:
    found = watch_shown(row)
    return {"watch": found, "rows": [*_metrics(found["metrics"]), *_scores(found["scores"])] if found else []}


def _metrics(metrics: Mapping[str, Any]) -> Iterator[_Row]:
    for name, one in metrics.items():
        if name == Metric.LATENCY_P95:
            # The share of slow requests is a rate, and not a latency.
            yield _row("slower than the usual 95th percentile", "slow", one)
        else:
            yield _row(LABELS[Metric(name)], name, one)


def _scores(scores: Mapping[str, Any]) -> Iterator[_Row]:
    for title, one in scores.items():
        yield _row(f"mean score of {title}", "score", one)


def _row(name: str, unit: str, one: Mapping[str, Any]) -> _Row:
    low, high = (change(unit, one["interval"][end]) for end in ("low", "high"))
    return _Row(
        name,
        datetime.fromisoformat(one["warned_at"]) if one["warned_at"] else None,
        figure(unit, one["value"]),
        figure(unit, one["before"]),
        change(unit, one["difference"]),
        f"{low} to {high}",
    )
