"""Which online evaluations score rollouts: those with a matched sample, the same number of answers of both arms."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Min, QuerySet

from analytics.models import OnlineEvaluation
from analytics.models.evaluators import EvaluatorState
from analytics.models.online_evaluations import EvaluationState
from analytics.online_evaluations.sampling import minute_of
from analytics.online_evaluations.selectors import list_online_evaluations, scoring_number_of

ONE_ARM = frozenset({"prompt_version", "not_prompt_version", "variant", "not_variant"})
"""The filters that leave out an arm."""

_ROLLOUT = frozenset({"rollout_id", "not_rollout_id"})


def matched_evaluators(project_id: UUID) -> list[tuple[UUID, str]]:
    rows = _matched(project_id).filter(evaluator__state=EvaluatorState.ACTIVE).order_by("evaluator__name")
    return list(rows.values_list("evaluator_id", "evaluator__name").distinct())


def matched_evaluations(project_id: UUID, config_id: UUID) -> Mapping[tuple[UUID, int], OnlineEvaluation]:
    """Returns the active evaluations that score both arms of the config's rollouts, by evaluator and version number.

    If several match, the first one counts.
    """
    rows = list_online_evaluations(project_id).filter(
        matched=True, state=EvaluationState.ACTIVE, evaluator__state=EvaluatorState.ACTIVE
    )
    taken = [row for row in rows.order_by("-created_at", "-pk") if _takes_rollouts_of(row.filter, config_id)]
    # The first one comes last, so that it replaces the others.
    return {(row.evaluator_id, scoring_number_of(row)): row for row in taken}


def sampled_until(project_id: UUID, evaluator_ids: Collection[UUID], now: datetime) -> datetime:
    """Returns the time before which these evaluators' samples are taken.

    A paused evaluation takes none, and resumes with the minutes after its pause.
    """
    rows = _matched(project_id).filter(evaluator_id__in=evaluator_ids)
    found: datetime | None = rows.aggregate(until=Min("sampled_until"))["until"]
    closed = minute_of(now)
    return closed if found is None else min(found, closed)


def _matched(project_id: UUID) -> QuerySet[OnlineEvaluation]:
    return OnlineEvaluation.objects.for_project(project_id).filter(matched=True, state=EvaluationState.ACTIVE)


def _takes_rollouts_of(filters: Mapping[str, Any], config_id: UUID) -> bool:
    is_of_all = not filters.keys() & (ONE_ARM | _ROLLOUT)
    return is_of_all and str(filters.get("prompt_config_id", config_id)) == str(config_id)
