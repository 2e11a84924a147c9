from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from decimal import ROUND_DOWN, Decimal
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from analytics.evaluators.errors import EvaluatorNotFoundError, EvaluatorVersionNotFoundError
from analytics.evaluators.selectors import KnownVersion, get_version
from analytics.models import SCORE_NAME_CHARACTERS, OnlineEvaluation
from analytics.models.online_evaluations import EvaluationState
from analytics.online_evaluations.errors import TooManyOnlineEvaluationsError
from analytics.online_evaluations.money import change_budget
from analytics.online_evaluations.sampling import minute_of
from analytics.online_evaluations.selectors import get_online_evaluation
from core.errors import ValidationError
from core.resources.rows import lock_project, require_room
from gateway.evaluations.judge_cost import judge_problem
from gateway.selectors import project_settings
from integrations.pricing.cost import PLACES

logger = logging.getLogger("analytics.online_evaluations")

MAX_ACTIVE = 5
SHARE_OF_BUDGET = Decimal("0.1")
"""The share of the project's budget that judging may cost in a month if no budget is given."""

_CHANGEABLE = ("filter", "rate", "monthly_budget_usd", "matched", "label_share", "state")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewOnlineEvaluation:
    """`filter` holds parameters of `GET requests`; `version` defaults to the evaluator's newest."""

    evaluator_id: UUID
    rate: float
    filter: Mapping[str, Any] = field(default_factory=dict)
    version: int | None = None
    monthly_budget_usd: Decimal | None = None
    matched: bool = False
    label_share: float | None = None


def require_judge(*, project_id: UUID, new: NewOnlineEvaluation) -> None:
    """Raises ValidationError if no budget can be kept with the evaluator's judge at current models and prices: every
    score would be missing."""
    known = _version(project_id, new)
    _budget(known, project_id, new.monthly_budget_usd)
    if problem := judge_problem(project_id, known.definition):
        raise ValidationError.of_field("evaluator_id", problem)


def create_online_evaluation(*, project_id: UUID, new: NewOnlineEvaluation, actor: str) -> OnlineEvaluation:
    """Raises ValidationError, which names the field, and TooManyOnlineEvaluationsError."""
    known = _version(project_id, new)
    now = timezone.now()
    values = {
        **asdict(new),
        "version_id": None if new.version is None else known.version_id,
        "monthly_budget_usd": _budget(known, project_id, new.monthly_budget_usd),
    }
    del values["version"]
    with transaction.atomic():
        _require_room(project_id)
        row = OnlineEvaluation.objects.create(
            project_id=project_id,
            created_by=actor,
            created_at=now,
            active_since=now,
            sampled_until=minute_of(now),
            **values,
        )
    logger.info("online_evaluation.created evaluation_id=%s project_id=%s actor=%s", row.pk, project_id, actor)
    return row


def change_online_evaluation(
    *, project_id: UUID, evaluation_id: UUID, values: Mapping[str, Any], actor: str
) -> OnlineEvaluation:
    """The sample of past minutes stays. Raises OnlineEvaluationNotFoundError, ValidationError,
    TooManyOnlineEvaluationsError."""
    with transaction.atomic():
        # The lock comes first, so that the counter of active ones, and the cursor, are those of one moment.
        lock_project(project_id)
        row = get_online_evaluation(project_id, evaluation_id)
        was_active = row.state == EvaluationState.ACTIVE
        changed = [name for name in _CHANGEABLE if name in values]
        for name in changed:
            setattr(row, name, values[name])
        number = row.version.number if row.version is not None else None
        known = get_version(project_id, row.evaluator_id, number)
        row.monthly_budget_usd = _budget(known, project_id, row.monthly_budget_usd)
        now = timezone.now()
        if row.state == EvaluationState.ACTIVE and not was_active:
            _require_room(project_id)
            row.active_since, row.sampled_until = now, minute_of(now)
            changed += ["active_since", "sampled_until"]
        row.save(update_fields=changed)
        change_budget(row, now)
    logger.info("online_evaluation.changed evaluation_id=%s fields=%s actor=%s", row.pk, ",".join(changed), actor)
    return row


def delete_online_evaluation(*, project_id: UUID, evaluation_id: UUID, actor: str) -> None:
    """Skips what is due; scores and counts stay as long as the requests. Raises OnlineEvaluationNotFoundError."""
    row = get_online_evaluation(project_id, evaluation_id)
    row.state = EvaluationState.DELETED
    row.save(update_fields=["state"])
    logger.info("online_evaluation.deleted evaluation_id=%s project_id=%s actor=%s", row.pk, project_id, actor)


def _version(project_id: UUID, new: NewOnlineEvaluation) -> KnownVersion:
    try:
        known = get_version(project_id, new.evaluator_id, new.version)
    except EvaluatorNotFoundError:
        raise ValidationError.of_field("evaluator_id", "There is no such evaluator in this project.") from None
    except EvaluatorVersionNotFoundError:
        raise ValidationError.of_field("version", "The evaluator has no such version.") from None
    if not known.definition.scores_alone:
        problem = "It compares an answer with another one, or with an expected one, and answers of clients have none."
        raise ValidationError.of_field("evaluator_id", problem)
    if len(known.title) > SCORE_NAME_CHARACTERS:
        problem = f"Its name and version are longer than {SCORE_NAME_CHARACTERS} characters, the most of a score."
        raise ValidationError.of_field("evaluator_id", problem)
    return known


def _budget(known: KnownVersion, project_id: UUID, given: Decimal | None) -> Decimal | None:
    """The most that judging may cost per month: as given, else the default if the evaluator asks a model. Raises
    ValidationError if the default needs the project's monthly budget and there is none."""
    if given is not None or not known.definition.asks_a_model:
        return given
    of_project = project_settings(project_id).monthly_budget_usd
    if of_project is None:
        problem = "Must be given for an evaluator that asks a model, as the project has no budget of the month."
        raise ValidationError.of_field("monthly_budget_usd", problem)
    return (of_project * SHARE_OF_BUDGET).quantize(PLACES, rounding=ROUND_DOWN)


def _require_room(project_id: UUID) -> None:
    active = OnlineEvaluation.objects.for_project(project_id).filter(state=EvaluationState.ACTIVE)
    require_room(project_id, active, MAX_ACTIVE, TooManyOnlineEvaluationsError(MAX_ACTIVE))
