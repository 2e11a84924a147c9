"""Online evaluations with answers in every state."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

from django.utils import timezone

from analytics.models import EvaluationTask, Evaluator, OnlineEvaluation
from analytics.models.online_evaluations import SkipReason, TaskState

_ENDS: dict[str, dict[str, Any]] = {
    "due": {"state": TaskState.DUE},
    "done": {"state": TaskState.DONE, "score": 1.0, "cost_usd": Decimal("0.002")},
    "failed": {"state": TaskState.FAILED, "reason": "judge_failed", "cost_usd": Decimal("0.001")},
    "skipped": {"state": TaskState.SKIPPED, "reason": SkipReason.BUDGET},
}


def make_online_evaluation(
    evaluator: Evaluator, *, values: dict[str, Any] | None = None, **ends: int
) -> OnlineEvaluation:
    """Returns an active evaluation of all answers. `ends` says how many tasks it has in each state."""
    now = timezone.now()
    given = {"rate": 1.0, "sampled_until": now, "created_by": "user:ann", **(values or {})}
    row = OnlineEvaluation.objects.create(project_id=evaluator.project_id, evaluator=evaluator, **given)
    version = evaluator.versions.order_by("-number")[0]
    tasks = [
        EvaluationTask(
            project_id=evaluator.project_id,
            evaluation=row,
            version=version,
            request_id=uuid4(),
            requested_at=now - timedelta(minutes=2),
            due_at=now - timedelta(minutes=1),
            position=number,
            ended_at=None if name == "due" else now,
            **_ENDS[name],
        )
        for name, count in ends.items()
        for number in range(count)
    ]
    EvaluationTask.objects.bulk_create(tasks)
    return row
