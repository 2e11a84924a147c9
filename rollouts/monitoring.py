"""The number and the stages of running rollouts, for monitoring."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import connection
from prometheus_client.core import Metric

from core.processes.monitoring import Found, Subject, gauge
from rollouts.models import Rollout
from rollouts.states import ACTIVE

_MAX_ROLLOUTS = 100
_LABELS = ("project", "rollout", "prompt")


def _active() -> dict[str, Any]:
    try:
        found = Rollout.objects.filter(status__in=[status.value for status in ACTIVE])
        rows = found.select_related("config", "evaluation").prefetch_related("stages")[:_MAX_ROLLOUTS]
        return {"rollouts": [_row_values(row) for row in rows]}
    finally:
        connection.close()


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


def _metrics(found: Found) -> Iterable[Metric]:
    rows = found["rollouts"]

    def labels(row: Any) -> tuple[str, ...]:
        return tuple(row[name] for name in _LABELS)

    yield gauge(
        "rollout_stage",
        "The stage of a rollout that has not ended, by status.",
        [*_LABELS, "status"],
        [((*labels(row), row["status"]), row["stage"]) for row in rows],
    )
    yield gauge(
        "rollout_weight_percent",
        "The share of traffic that the target of a rollout gets.",
        _LABELS,
        [(labels(row), row["weight"]) for row in rows],
    )
    yield gauge(
        "rollout_verdict",
        "1 for the latest verdict of a rollout.",
        [*_LABELS, "decision"],
        [((*labels(row), row["decision"]), 1) for row in rows],
    )
    yield gauge(
        "rollout_overdue",
        "Whether a rollout waits for longer than its stage should take.",
        _LABELS,
        [(labels(row), row["overdue"]) for row in rows],
    )


ROLLOUTS = Subject("rollouts", _active, 15.0, _metrics)
