"""Tasks of online evaluations for rollouts, as the sample and the judge leave them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from analytics.models import EvaluationTask, Evaluator, OnlineEvaluation
from analytics.online_evaluations.selectors import version_of
from core.models import Project
from rollouts.models import Rollout
from tests.factories.evaluators import make_evaluator
from tests.factories.online_evaluations import make_online_evaluation, new_task
from tests.rollouts.request_log import this_minute

Scores = Sequence[float | None]


def matched(project: Project, evaluator: Evaluator | None = None, **fields: Any) -> OnlineEvaluation:
    """Makes an online evaluation of rollouts, of a rule unless an evaluator is given."""
    row = make_online_evaluation(evaluator or make_evaluator(project), **{"matched": True, **fields})
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
    own = {
        "version": version_of(evaluation),
        "prompt_config_id": rollout.config_id,
        "rollout_id": rollout.pk,
        "rollout_stage": stage,
        "due_at": this_minute() - timedelta(minutes=ago - 1),
        **values,
    }
    rows = [
        new_task(evaluation, variant=variant, score=score, **own)
        for variant, scores in (("target", target), ("baseline", baseline))
        for score in scores
    ]
    return EvaluationTask.objects.bulk_create(rows)
