"""Which scores belong to an evaluator, whatever its name is now.

An evaluator's own scores name the version by its id. Scores from clients have only `name@version`, and belong to the
evaluator with that name. When it is renamed, they get the version's id, so that they stay its own.
"""

from __future__ import annotations

from uuid import UUID

from django.db.models import Q, QuerySet

from analytics.evaluators.selectors import KnownVersion, title_of
from analytics.models import Evaluator, EvaluatorType, Score, ScoreType
from analytics.scores.services import NewScore


def new_score(
    version: KnownVersion, request_id: UUID, value: float, *, kind: str, reason: str = "", judge_model: str = ""
) -> NewScore:
    """Returns a score that the version gives a request; it has one of each `kind`."""
    return NewScore(
        request_id=str(request_id),
        score_name=version.title,
        evaluator_version_id=version.version_id,
        score_value=value,
        reason=reason,
        evaluator_type=version.definition.evaluator_type,
        judge_model=judge_model,
        score_id=f"{kind}:{version.version_id}:{request_id}",
    )


def scores_of(project_id: UUID, version: KnownVersion) -> QuerySet[Score]:
    named = Q(evaluator_version_id=None, score_name=version.title)
    own = _scores(project_id).filter(Q(evaluator_version_id=version.version_id) | named)
    return own.filter(score_type__in=[ScoreType.NUMBER, ScoreType.BOOLEAN])


def keep_scores(evaluator: Evaluator, name: str) -> None:
    """Gives client scores that name the evaluator by `name` the ids of its versions."""
    versions = {title_of(name, number): key for key, number in evaluator.versions.values_list("pk", "number")}
    named = _scores(evaluator.project_id).filter(evaluator_version_id=None, score_name__in=list(versions))
    for title in list(named.order_by().values_list("score_name", flat=True).distinct()):
        named.filter(score_name=title).update(evaluator_version_id=versions[title])


def _scores(project_id: UUID) -> QuerySet[Score]:
    return Score.objects.for_project(project_id).exclude(evaluator_type=EvaluatorType.HUMAN)
