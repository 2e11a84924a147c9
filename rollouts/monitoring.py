from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from prometheus_client.core import Metric

from core.processes.monitoring import IN_DATABASE, Found, Subject, gauge
from rollouts.models import Rollout
from rollouts.states import ACTIVE

_MAX_ROLLOUTS = 100
_LABELS = ("project", "rollout", "prompt")


def _active() -> dict[str, Any]:
    found = Rollout.objects.filter(status__in=[status.value for status in ACTIVE])
    rows = found.select_related("config", "evaluation").prefetch_related("stages")[:_MAX_ROLLOUTS]
    return {"rollouts": [_row_values(row) for row in rows]}


def _row_values(row: Rollout) -> dict[str, Any]:
    verdict = row.evaluation.verdict if hasattr(row, "evaluation") else {}
    weights = {stage.number: stage.weight for stage in row.stages.all()}
    return {
        "project": str(row.project_id),
        "rollout": str(row.pk),
        "prompt": row.config.name,
        "status": row.status,
        "stage": row.current_stage,
        "weight": weights.get(row.current_stage, 0),
        "decision": verdict.get("decision", "wait"),
        "overdue": bool(verdict.get("overdue", False)),
    }


_GAUGES: tuple[tuple[str, str, tuple[str, ...], str], ...] = (
    ("rollout_stage", "The stage of a rollout that has not ended, by status.", ("status",), "stage"),
    ("rollout_weight_percent", "The share of traffic that the target of a rollout gets.", (), "weight"),
    ("rollout_verdict", "1 for the latest verdict of a rollout.", ("decision",), ""),
    ("rollout_overdue", "Whether a rollout waits for longer than its stage should take.", (), "overdue"),
)
"""The name, the text, the further labels and the value of each gauge, which is 1 where it is empty."""


def _metrics(found: Found) -> Iterable[Metric]:
    for name, text, more, value in _GAUGES:
        labels = (*_LABELS, *more)
        rows = [(tuple(row[label] for label in labels), row[value] if value else 1) for row in found["rollouts"]]
        yield gauge(name, text, labels, rows)


ROLLOUTS = Subject("rollouts", _active, 20.0, _metrics, looks=IN_DATABASE)
