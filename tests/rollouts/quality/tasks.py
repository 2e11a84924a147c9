"""Tasks of online evaluations for rollouts, as the sample and the judge leave them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import uuid4

from analytics.models import EvaluationTask, Evaluator, OnlineEvaluation
from analytics.models.online_evaluations import TaskState
from analytics.online_evaluations.sampling import position_of
from analytics.online_evaluations.selectors import version_of
from analytics.online_evaluations.services import NewOnlineEvaluation, create_online_evaluation
from core.models import Project
from rollouts.models import Rollout
from tests.factories.evaluators import make_evaluator
from tests.rollouts.request_log import this_minute

MINUTE = timedelta(minutes=1)
Scores = Sequence[float | None]


def matched(project: Project, evaluator: Evaluator | None = None, **fields: Any) -> OnlineEvaluation:
    """Makes an online evaluation of rollouts, of a rule unless an evaluator is given."""
    evaluator = evaluator or make_evaluator(project)
    new = NewOnlineEvaluation(**{"evaluator_id": evaluator.pk, "rate": 1.0, "matched": True, **fields})
    row = create_online_evaluation(project_id=project.pk, new=new, actor="test")
    OnlineEvaluation.objects.filter(pk=row.pk).update(sampled_until=this_minute())
    row.refresh_from_db()
    return row


def sampled(
    rollout: Rollout,
    evaluation: OnlineEvaluation,
    ago: int,
    *,
    target: Scores = (),
    baseline: Scores = (),
    stage: int = 1,
    **values: Any,
) -> list[EvaluationTask]:
    """Makes the tasks of answers that were recorded in the minute that began `ago` minutes before this one, and judged
    a minute later. Those without a score were skipped, because their text is not stored."""
    due_at = this_minute() - timedelta(minutes=ago - 1)
    rows = [
        _task(rollout, evaluation, variant, score, due_at=due_at, rollout_stage=stage, **values)
        for variant, scores in (("target", target), ("baseline", baseline))
        for score in scores
    ]
    return EvaluationTask.objects.bulk_create(rows)


def _task(
    rollout: Rollout, evaluation: OnlineEvaluation, variant: str, score: float | None, **values: Any
) -> EvaluationTask:
    request_id = uuid4()
    is_done = score is not None
    given = {
        "project_id": rollout.project_id,
        "evaluation": evaluation,
        "version": version_of(evaluation),
        "request_id": request_id,
        "requested_at": values["due_at"] - MINUTE,
        "prompt_config_id": rollout.config_id,
        "rollout_id": rollout.pk,
        "variant": variant,
        "position": position_of(rollout.pk, evaluation.evaluator_id, request_id),
        "state": TaskState.DONE if is_done else TaskState.SKIPPED,
        "reason": "" if is_done else "no_text",
        "score": score,
        "ended_at": values["due_at"] + MINUTE,
    }
    return EvaluationTask(**{**given, **values})
