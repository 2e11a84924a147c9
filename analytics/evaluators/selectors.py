"""Reads evaluators and their versions."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.db.models import Max, OuterRef, QuerySet, Subquery

from analytics.evaluators.definitions import Definition, read_definition
from analytics.evaluators.errors import EvaluatorNotFoundError, EvaluatorVersionNotFoundError
from analytics.models import Evaluator, EvaluatorVersion
from analytics.models.evaluators import EvaluatorState


@dataclass(frozen=True, slots=True)
class KnownVersion:
    """A version of an evaluator with its definition read. Scores name `title`."""

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
    """Returns the name of the scores that a version of an evaluator gives."""
    return f"{name}@{number}"


def list_evaluators(project_id: UUID) -> QuerySet[Evaluator]:
    """Returns the evaluators by name, each with the number of its newest version as `newest`."""
    return Evaluator.objects.for_project(project_id).order_by("name", "id").annotate(newest=Max("versions__number"))


def list_with_versions(project_id: UUID) -> QuerySet[Evaluator]:
    """Returns the evaluators by name, each with all of its versions, the newest first."""
    return Evaluator.objects.for_project(project_id).order_by("name", "id").prefetch_related("versions")


def newest_versions(project_id: UUID) -> list[KnownVersion]:
    """Returns the newest version of each active evaluator, by name."""
    numbers = EvaluatorVersion.objects.filter(evaluator=OuterRef("evaluator")).order_by("-number").values("number")
    rows = EvaluatorVersion.objects.filter(
        evaluator__project_id=project_id, evaluator__state=EvaluatorState.ACTIVE, number=Subquery(numbers[:1])
    )
    return [known_version(row) for row in rows.select_related("evaluator").order_by("evaluator__name", "evaluator_id")]


def get_evaluator(project_id: UUID, evaluator_id: UUID) -> Evaluator:
    """Raises EvaluatorNotFoundError."""
    row = Evaluator.objects.for_project(project_id).filter(pk=evaluator_id).first()
    if row is None:
        raise EvaluatorNotFoundError
    return row


def get_with_versions(project_id: UUID, evaluator_id: UUID) -> Evaluator:
    """Returns an evaluator with all of its versions, the newest first. Raises EvaluatorNotFoundError."""
    row = list_with_versions(project_id).filter(pk=evaluator_id).first()
    if row is None:
        raise EvaluatorNotFoundError
    return row


def get_version(project_id: UUID, evaluator_id: UUID, number: int | None = None) -> KnownVersion:
    """Returns a version of an evaluator, the newest without a number. Raises EvaluatorNotFoundError and
    EvaluatorVersionNotFoundError."""
    rows = get_evaluator(project_id, evaluator_id).versions.select_related("evaluator").order_by("-number")
    row = rows.first() if number is None else rows.filter(number=number).first()
    if row is None:
        raise EvaluatorVersionNotFoundError
    return known_version(row)


def known_version(row: EvaluatorVersion) -> KnownVersion:
    """Reads the definition of a version whose evaluator is loaded."""
    evaluator = row.evaluator
    return KnownVersion(
        version_id=row.pk,
        evaluator_id=evaluator.pk,
        name=evaluator.name,
        number=row.number,
        definition=read_definition(evaluator.kind, row.definition),
        good_from=row.good_from,
    )
