from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import reduce
from operator import or_
from typing import Any
from uuid import UUID

from django.db.models import Q

from analytics.evaluators.definitions import Definition, UserFeedback
from analytics.evaluators.selectors import KnownVersion, known_version, list_evaluators
from analytics.models import EvaluatorVersion
from analytics.models.evaluators import EvaluatorState
from gateway.experiments.errors import invalid
from gateway.experiments.verdict import Rule

PAIRWISE = "pairwise"


@dataclass(frozen=True, slots=True)
class NewEvaluator:
    """The newest version by default. `min_rate` is the share of good answers that is enough to pass."""

    evaluator_id: UUID
    version: int | None = None
    required: bool = True
    must_pass: bool = False
    min_rate: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentEvaluator(Rule):
    """An evaluator with its name of the time when the experiment was made; ids are texts."""

    version_id: str
    evaluator_id: str
    name: str
    number: int
    kind: str

    @property
    def title(self) -> str:
        return f"{self.name}@{self.number}"

    @property
    def is_pairwise(self) -> bool:
        return self.kind == PAIRWISE


def resolved(project_id: UUID, given: Sequence[NewEvaluator]) -> list[ExperimentEvaluator]:
    """Raises ValidationError for one that the project does not have or has archived, an unknown version, a duplicate,
    or one that counts users' feedback."""
    versions = _versions(project_id, given)
    for index, version in enumerate(versions):
        if any(earlier.version_id == version.version_id for earlier in versions[:index]):
            raise invalid("evaluators", index, "Is the same as an earlier evaluator.")
        if isinstance(version.definition, UserFeedback):
            raise invalid(
                "evaluators", index, "Users rate the answers that they get, and none of an experiment.", "evaluator_id"
            )
    return [_evaluator(new, version) for new, version in zip(given, versions, strict=True)]


def definitions_of(evaluators: Iterable[ExperimentEvaluator]) -> list[Definition]:
    wanted = [UUID(evaluator.version_id) for evaluator in evaluators]
    rows = EvaluatorVersion.objects.filter(pk__in=wanted).select_related("evaluator")
    found = {row.pk: known_version(row).definition for row in rows}
    return [found[version_id] for version_id in wanted]


def evaluators_of(stored: Iterable[Mapping[str, Any]]) -> list[ExperimentEvaluator]:
    return [ExperimentEvaluator(**fields) for fields in stored]


def stored_form(evaluators: Iterable[ExperimentEvaluator]) -> list[dict[str, Any]]:
    return [asdict(evaluator) for evaluator in evaluators]


def _versions(project_id: UUID, given: Sequence[NewEvaluator]) -> list[KnownVersion]:
    if not given:
        return []
    ids = {new.evaluator_id for new in given}
    known: dict[UUID, Any] = {row.pk: row for row in list_evaluators(project_id).filter(pk__in=ids)}
    wanted: list[tuple[UUID, int]] = []
    for index, new in enumerate(given):
        evaluator = known.get(new.evaluator_id)
        if evaluator is None:
            raise invalid("evaluators", index, "The project has no such evaluator.", "evaluator_id")
        if evaluator.state == EvaluatorState.ARCHIVED:
            raise invalid("evaluators", index, "The evaluator is archived.", "evaluator_id")
        wanted.append((new.evaluator_id, evaluator.newest if new.version is None else new.version))
    named = reduce(or_, (Q(evaluator_id=evaluator_id, number=number) for evaluator_id, number in wanted))
    rows = EvaluatorVersion.objects.filter(named).select_related("evaluator")
    found = {(row.evaluator_id, row.number): known_version(row) for row in rows}
    for index, key in enumerate(wanted):
        if key not in found:
            raise invalid("evaluators", index, f"The evaluator has no version {key[1]}.", "version")
    return [found[key] for key in wanted]


def _evaluator(new: NewEvaluator, version: KnownVersion) -> ExperimentEvaluator:
    return ExperimentEvaluator(
        version_id=str(version.version_id),
        evaluator_id=str(version.evaluator_id),
        name=version.name,
        number=version.number,
        kind=version.definition.kind,
        required=new.required,
        must_pass=new.must_pass or new.min_rate is not None,
        min_rate=new.min_rate,
        good_from=version.good_from,
    )
