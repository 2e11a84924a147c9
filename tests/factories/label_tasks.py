"""Tasks of online evaluations that have a score, and a label due."""

from __future__ import annotations

from datetime import timedelta
from itertools import count
from typing import Any
from uuid import UUID, uuid4

from django.utils import timezone

from analytics.models import EvaluationTask, Evaluator, OnlineEvaluation
from analytics.online_evaluations.services import NewOnlineEvaluation, create_online_evaluation

_positions = count(1)


def make_evaluation(evaluator: Evaluator, **fields: Any) -> OnlineEvaluation:
    """Returns an active, matched online evaluation with labels, that takes all answers."""
    values = {"rate": 1, "matched": True, "label_share": 0.5, "monthly_budget_usd": None, **fields}
    new = NewOnlineEvaluation(evaluator_id=evaluator.pk, **values)
    return create_online_evaluation(project_id=evaluator.project_id, new=new, actor="test")


def make_task(evaluation: OnlineEvaluation, variant: str = "target", **fields: Any) -> EvaluationTask:
    """Returns a task of one arm of a rollout whose answer is scored and whose label is due."""
    now = timezone.now()
    values: dict[str, Any] = {
        "request_id": uuid4(),
        "requested_at": now - timedelta(minutes=2),
        "rollout_id": UUID(int=3),
        "rollout_stage": 1,
        "due_at": now - timedelta(minutes=1),
        "position": next(_positions),
        "state": "done",
        "score": 1.0,
        "ended_at": now,
        "label_due": True,
        "label_share": 0.5,
        **fields,
    }
    version = evaluation.evaluator.versions.get(number=1)
    return EvaluationTask.objects.create(
        project_id=evaluation.project_id, evaluation=evaluation, version=version, variant=variant, **values
    )
