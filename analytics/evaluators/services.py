from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction

from analytics.evaluators.definitions import read_definition, stored_form
from analytics.evaluators.errors import EvaluatorExistsError, TooManyEvaluatorsError
from analytics.evaluators.own_scores import keep_scores
from analytics.evaluators.selectors import get_evaluator
from analytics.models import Evaluator, EvaluatorVersion
from analytics.models.evaluators import DEFAULT_GOOD_FROM
from core.resources.rows import lock_project, require_room

logger = logging.getLogger("analytics.evaluators")

MAX_EVALUATORS = 100
MAX_VERSIONS = 1_000


@dataclass(frozen=True, slots=True)
class NewVersion:
    definition: Mapping[str, Any]
    good_from: float = DEFAULT_GOOD_FROM


def create_evaluator(
    *, project_id: UUID, name: str, kind: str, first: NewVersion, actor: str, description: str = ""
) -> Evaluator:
    """Raises ValidationError, which names the field of the definition, EvaluatorExistsError and
    TooManyEvaluatorsError.
    """
    definition = read_definition(kind, first.definition)
    with transaction.atomic():
        full = TooManyEvaluatorsError(MAX_EVALUATORS, "evaluators")
        require_room(project_id, Evaluator.objects.for_project(project_id), MAX_EVALUATORS, full)
        evaluator = _saved(
            Evaluator(project_id=project_id, name=name, kind=kind, description=description, created_by=actor)
        )
        EvaluatorVersion.objects.create(
            evaluator=evaluator,
            number=1,
            definition=stored_form(definition),
            good_from=first.good_from,
            created_by=actor,
        )
    logger.info("evaluator.created evaluator_id=%s project_id=%s actor=%s", evaluator.pk, project_id, actor)
    return evaluator


def add_version(*, project_id: UUID, evaluator_id: UUID, new: NewVersion, actor: str) -> EvaluatorVersion:
    """Returns the newest version unchanged if it has this definition already.

    Raises EvaluatorNotFoundError, ValidationError and TooManyEvaluatorsError.
    """
    with transaction.atomic():
        lock_project(project_id)
        evaluator = get_evaluator(project_id, evaluator_id)
        stored = stored_form(read_definition(evaluator.kind, new.definition))
        newest = evaluator.versions.order_by("-number").first()
        if newest is not None and (newest.definition, newest.good_from) == (stored, new.good_from):
            return newest
        number = newest.number + 1 if newest is not None else 1
        if number > MAX_VERSIONS:
            raise TooManyEvaluatorsError(MAX_VERSIONS, "versions of this evaluator")
        version = EvaluatorVersion.objects.create(
            evaluator=evaluator, number=number, definition=stored, good_from=new.good_from, created_by=actor
        )
    logger.info("evaluator.version_added evaluator_id=%s number=%d actor=%s", evaluator_id, number, actor)
    return version


def change_evaluator(*, project_id: UUID, evaluator_id: UUID, values: Mapping[str, Any]) -> Evaluator:
    row = get_evaluator(project_id, evaluator_id)
    former = row.name
    for name in ("name", "description", "state"):
        setattr(row, name, values.get(name, getattr(row, name)))
    with transaction.atomic():
        if row.name != former:
            keep_scores(row, former)
        return _saved(row)


def _saved(row: Evaluator) -> Evaluator:
    taken = Evaluator.objects.for_project(row.project_id).filter(name=row.name).exclude(pk=row.pk)
    if taken.exists():
        raise EvaluatorExistsError
    try:
        row.save()
    except IntegrityError:
        raise EvaluatorExistsError from None
    return row
