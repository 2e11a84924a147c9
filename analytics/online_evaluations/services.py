"""Makes, changes and deletes online evaluations, and deletes their tasks with what these are about."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

from django.db import transaction
from django.utils import timezone

from analytics.evaluators.errors import EvaluatorNotFoundError, EvaluatorVersionNotFoundError
from analytics.evaluators.selectors import KnownVersion, get_version
from analytics.models import SCORE_NAME_CHARACTERS, EvaluationTask, OnlineEvaluation
from analytics.models.online_evaluations import EvaluationState, SkipReason, TaskState
from analytics.online_evaluations.default_budget import default_budget
from analytics.online_evaluations.errors import TooManyOnlineEvaluationsError
from analytics.online_evaluations.judge_cost import judge_problem
from analytics.online_evaluations.money import change_budget
from analytics.online_evaluations.sampling import minute_of
from analytics.online_evaluations.selectors import get_online_evaluation
from core.chunks import chunks
from core.errors import ValidationError
from core.models import Project

logger = logging.getLogger("analytics.online_evaluations")

MAX_ACTIVE = 5

_CHANGEABLE = ("filter", "rate", "monthly_budget_usd", "matched", "label_share", "state")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewOnlineEvaluation:
    """An online evaluation to be made. `filter` holds parameters of `GET requests`; without `version` the newest one of
    the evaluator scores."""

    evaluator_id: UUID
    rate: float
    filter: Mapping[str, Any] = field(default_factory=dict)
    version: int | None = None
    monthly_budget_usd: Decimal | None = None
    matched: bool = False
    label_share: float | None = None


def require_judge(*, project_id: UUID, new: NewOnlineEvaluation) -> None:
    """Raises ValidationError where every score would be missing, since no budget can be kept with the evaluator's judge
    as models and prices are now."""
    known = _version(project_id, new)
    _budget(known, project_id, new.monthly_budget_usd)
    if problem := judge_problem(project_id, known.definition):
        raise ValidationError.of_field("evaluator_id", problem)


def create_online_evaluation(*, project_id: UUID, new: NewOnlineEvaluation, actor: str) -> OnlineEvaluation:
    """Raises ValidationError, which names the field, and TooManyOnlineEvaluationsError."""
    known = _version(project_id, new)
    budget = _budget(known, project_id, new.monthly_budget_usd)
    now = timezone.now()
    with transaction.atomic():
        _require_room(project_id)
        row = OnlineEvaluation.objects.create(
            project_id=project_id,
            evaluator_id=new.evaluator_id,
            version_id=None if new.version is None else known.version_id,
            filter=dict(new.filter),
            rate=new.rate,
            matched=new.matched,
            label_share=new.label_share,
            monthly_budget_usd=budget,
            created_by=actor,
            created_at=now,
            active_since=now,
            sampled_until=minute_of(now),
        )
    logger.info("online_evaluation.created evaluation_id=%s project_id=%s actor=%s", row.pk, project_id, actor)
    return row


def change_online_evaluation(
    *, project_id: UUID, evaluation_id: UUID, values: Mapping[str, Any], actor: str
) -> OnlineEvaluation:
    """Changes what is given; the sample of the minutes that were looked at stays. Raises
    OnlineEvaluationNotFoundError, ValidationError and TooManyOnlineEvaluationsError."""
    with transaction.atomic():
        # The lock comes first, so that the counter of active ones, and the cursor, are those of one moment.
        Project.objects.select_for_update().get(pk=project_id)
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
    """What is due is skipped; what was scored, and how much was due, stays as long as the requests. Raises
    OnlineEvaluationNotFoundError."""
    row = get_online_evaluation(project_id, evaluation_id)
    row.state = EvaluationState.DELETED
    row.save(update_fields=["state"])
    logger.info("online_evaluation.deleted evaluation_id=%s project_id=%s actor=%s", row.pk, project_id, actor)


def forget_tasks_of(project_id: UUID, request_ids: Iterable[UUID | str]) -> int:
    """Makes the tasks of deleted requests anonymous. They stay, so that what was due does not shrink by those who have
    their requests deleted; what is due is skipped, also while it is judged, so that no score comes any more. Returns
    how many there were."""
    ids = [str(request_id) for request_id in request_ids]
    forgotten = 0
    for some in chunks(ids):
        tasks = EvaluationTask.objects.filter(project_id=project_id, request_id__in=some)
        with transaction.atomic():
            # Locked in the order in which workers do, so that neither waits for the other.
            found = list(tasks.select_for_update().order_by("pk"))
            _make_anonymous(found, timezone.now())
            changed = ["request_id", "is_erased", "state", "reason", "ended_at"]
            EvaluationTask.objects.bulk_update(found, changed)
        forgotten += len(found)
    return forgotten


def delete_tasks_before(project_id: UUID, moment: datetime) -> int:
    """Deletes the tasks of requests that arrived before `moment`, and deleted evaluations without any; returns how many
    tasks there were."""
    old = EvaluationTask.objects.filter(project_id=project_id, requested_at__lt=moment)
    deleted = old.filter(claim=None).delete()[0]
    gone = OnlineEvaluation.objects.for_project(project_id).filter(state=EvaluationState.DELETED, tasks=None)
    gone.filter(created_at__lt=moment).delete()
    return deleted


def _make_anonymous(tasks: Iterable[EvaluationTask], now: datetime) -> None:
    # Two evaluations may have the same answer due, which counts once.
    ids: defaultdict[UUID, UUID] = defaultdict(uuid4)
    for task in tasks:
        task.request_id, task.is_erased = ids[task.request_id], True
        if task.state == TaskState.DUE:
            # The worker that has it settles its money when it finds that the task has ended.
            task.state, task.reason, task.ended_at = TaskState.SKIPPED, SkipReason.NO_TEXT, now


def _version(project_id: UUID, new: NewOnlineEvaluation) -> KnownVersion:
    """Returns the version that is to score. Raises ValidationError for one that cannot score an answer by itself."""
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
    """Returns what judging may cost in a month: what is given, else the default where the evaluator asks a model.
    Raises ValidationError where that has none."""
    if given is not None or not known.definition.asks_a_model:
        return given
    found = default_budget(project_id)
    if found is None:
        problem = "Must be given for an evaluator that asks a model, as the project has no budget of the month."
        raise ValidationError.of_field("monthly_budget_usd", problem)
    return found


def _require_room(project_id: UUID) -> None:
    # Two calls at once would each find room for one more.
    Project.objects.select_for_update().get(pk=project_id)
    active = OnlineEvaluation.objects.for_project(project_id).filter(state=EvaluationState.ACTIVE)
    if active.count() >= MAX_ACTIVE:
        raise TooManyOnlineEvaluationsError(MAX_ACTIVE)
