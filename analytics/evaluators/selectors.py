from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.db.models import Max, OuterRef, QuerySet, Subquery

from analytics.evaluators.definitions import Definition, read_definition
from analytics.evaluators.errors import EvaluatorNotFoundError, EvaluatorVersionNotFoundError
from analytics.models import Evaluator, EvaluatorVersion
from analytics.models.evaluators import EvaluatorState
from core.resources.rows import get_or_raise


@dataclass(frozen=True, slots=True)
class KnownVersion:
    version_id: UUID
    evaluator_id: UUID
    name: str
    number: int
    definition: Definition
    good_from: float

    @property
    def title(self) -> str:
        return title_of(self.name, self.number)


def title_of(name: str, number: int) -> str:
    return f"{name}@{number}"


def list_evaluators(project_id: UUID) -> QuerySet[Evaluator]:
    """By name, each with its newest version's number as `newest`."""
    return Evaluator.objects.for_project(project_id).order_by("name", "id").annotate(newest=Max("versions__number"))


def list_with_versions(project_id: UUID) -> QuerySet[Evaluator]:
    return Evaluator.objects.for_project(project_id).order_by("name", "id").prefetch_related("versions")


def newest_versions(project_id: UUID) -> list[KnownVersion]:
    numbers = EvaluatorVersion.objects.filter(evaluator=OuterRef("evaluator")).order_by("-number").values("number")
    rows = EvaluatorVersion.objects.filter(
        evaluator__project_id=project_id, evaluator__state=EvaluatorState.ACTIVE, number=Subquery(numbers[:1])
    )
    return [known_version(row) for row in rows.select_related("evaluator").order_by("evaluator__name", "evaluator_id")]


def get_evaluator(project_id: UUID, evaluator_id: UUID) -> Evaluator:
    return get_or_raise(Evaluator.objects.for_project(project_id), EvaluatorNotFoundError, pk=evaluator_id)


def get_with_versions(project_id: UUID, evaluator_id: UUID) -> Evaluator:
    return get_or_raise(list_with_versions(project_id), EvaluatorNotFoundError, pk=evaluator_id)


def get_version(project_id: UUID, evaluator_id: UUID, number: int | None = None) -> KnownVersion:
    """Without a number the newest. Raises EvaluatorNotFoundError and EvaluatorVersionNotFoundError."""
    rows = get_evaluator(project_id, evaluator_id).versions.select_related("evaluator").order_by("-number")
    row = rows.first() if number is None else rows.filter(number=number).first()
    if row is None:
        raise EvaluatorVersionNotFoundError
    return known_version(row)


def known_version(row: EvaluatorVersion) -> KnownVersion:
    evaluator = row.evaluator
    return KnownVersion(
        version_id=row.pk,
        evaluator_id=evaluator.pk,
        name=evaluator.name,
        number=row.number,
        definition=read_definition(evaluator.kind, row.definition),
        good_from=row.good_from,
    )
