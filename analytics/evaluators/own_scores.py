"""Which scores are those of an evaluator, whatever its name is now.

Scores that evaluators give name the version by its id. Those that clients post have `name@version` alone, and are the
evaluator's that has the name: when it gets another one they are given the id, so that they stay its own.
"""

from __future__ import annotations

from uuid import UUID

from django.db.models import Q, QuerySet

from analytics.evaluators.selectors import KnownVersion, title_of
from analytics.models import Evaluator, EvaluatorType, Score, ScoreType


def scores_of(project_id: UUID, version: KnownVersion) -> QuerySet[Score]:
    """Returns the scores that a version of an evaluator gave."""
    named = Q(evaluator_version_id=None, score_name=version.title)
    own = _scores(project_id).filter(Q(evaluator_version_id=version.version_id) | named)
    return own.filter(score_type__in=[ScoreType.NUMBER, ScoreType.BOOLEAN])


def keep_scores(evaluator: Evaluator, name: str) -> None:
    """Gives the scores that only name the evaluator, by `name`, the ids of its versions."""
    versions = {title_of(name, number): key for key, number in evaluator.versions.values_list("pk", "number")}
    named = _scores(evaluator.project_id).filter(evaluator_version_id=None, score_name__in=list(versions))
    for title in list(named.order_by().values_list("score_name", flat=True).distinct()):
        named.filter(score_name=title).update(evaluator_version_id=versions[title])


def _scores(project_id: UUID) -> QuerySet[Score]:
    return Score.objects.for_project(project_id).exclude(evaluator_type=EvaluatorType.HUMAN)
