from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from itertools import count
from typing import Any
from uuid import UUID, uuid4

from django.utils import timezone

from analytics.models import EvaluationTask, Evaluator, OnlineEvaluation
from analytics.models.online_evaluations import SkipReason, TaskState
from analytics.online_evaluations.selectors import version_of
from gateway.evaluations.services import NewOnlineEvaluation, create_online_evaluation

MINUTE = timedelta(minutes=1)

_positions = count(1)
_ENDS: dict[str, dict[str, Any]] = {
    "due": {"state": TaskState.DUE, "ended_at": None},
    "done": {"score": 1.0, "cost_usd": Decimal("0.002")},
    "failed": {"state": TaskState.FAILED, "reason": "judge_failed", "cost_usd": Decimal("0.001")},
    "skipped": {"state": TaskState.SKIPPED, "reason": SkipReason.BUDGET},
}


def make_online_evaluation(evaluator: Evaluator, **fields: Any) -> OnlineEvaluation:
    new = NewOnlineEvaluation(**{"evaluator_id": evaluator.pk, "rate": 1.0, **fields})
    return create_online_evaluation(project_id=evaluator.project_id, new=new, actor="user:ann")


def new_task(evaluation: OnlineEvaluation, **fields: Any) -> EvaluationTask:
    """Returns an unsaved task, judged a minute after it came due. A task without a score was skipped, because its text
    is not stored."""
    due_at = fields.get("due_at") or timezone.now() - MINUTE
    is_done = fields.get("score") is not None
    values = {
        "project_id": evaluation.project_id,
        "evaluation": evaluation,
        "version": fields.get("version") or version_of(evaluation),
        "request_id": uuid4(),
        "requested_at": due_at - MINUTE,
        "due_at": due_at,
        "position": next(_positions),
        "state": TaskState.DONE if is_done else TaskState.SKIPPED,
        "reason": "" if is_done else SkipReason.NO_TEXT,
        "ended_at": due_at + MINUTE,
    }
    return EvaluationTask(**{**values, **fields})


def make_tasks(evaluation: OnlineEvaluation, **ends: int) -> OnlineEvaluation:
    tasks = [new_task(evaluation, **_ENDS[name]) for name, number in ends.items() for _ in range(number)]
    EvaluationTask.objects.bulk_create(tasks)
    return evaluation


def make_labelled_evaluation(evaluator: Evaluator, **fields: Any) -> OnlineEvaluation:
    return make_online_evaluation(evaluator, **{"matched": True, "label_share": 0.5, **fields})


def make_label_task(evaluation: OnlineEvaluation, variant: str = "target", **fields: Any) -> EvaluationTask:
    values = {"rollout_id": UUID(int=3), "rollout_stage": 1, "score": 1.0, "label_due": True, "label_share": 0.5}
    task = new_task(evaluation, variant=variant, **{**values, **fields})
    task.save()
    return task
