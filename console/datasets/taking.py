from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from analytics.datasets import services
from analytics.datasets.services import Added
from analytics.datasets.sources import Options, of_keys
from analytics.queries.request_cursor import RequestCursor
from core.errors import ValidationError
from gateway.experiments.candidates import candidates_of
from gateway.models import Experiment, ExperimentAnswer, ExperimentItem
from gateway.tables.experiment import LABELS

GIVEN, WINNER = "given", "winner"
_MAX_POSITIONS = 1_000


@dataclass(frozen=True, slots=True)
class FromExperiment:
    """The items of an experiment at these positions; all if `positions` is empty."""

    experiment: Experiment
    positions: Sequence[int]

    @property
    def words(self) -> str:
        name = self.experiment.name or "an experiment"
        if not self.positions:
            return f"all items of {name}"
        named = ", ".join(map(str, self.positions[:10])) + (", …" if len(self.positions) > 10 else "")
        return f"item{'s' if len(self.positions) > 1 else ''} {named} of {name}"

    @property
    def expected_choices(self) -> list[tuple[str, str]]:
        of_set = self.experiment.dataset_id is not None
        titles = [(one.label, f"The answer of {one.label}: {one.title}") for one in candidates_of(self._candidates)]
        first = ("", "What they expect already") if of_set else ("", "None")
        given = [] if of_set else [(GIVEN, "The one that the client got")]
        return [first, *given, *titles, (WINNER, "The one that a person called better, where there is one")]

    def add(self, *, dataset_id: UUID, expected: str, options: Options, actor: str) -> Added:
        rows = list(self._rows())
        whose: dict[str, Any] = {
            "project_id": self.experiment.project_id,
            "dataset_id": dataset_id,
            "options": replace(options, expect_answer=expected == GIVEN, answers=self._answers(rows, expected)),
            "actor": actor,
        }
        if self.experiment.dataset_id is not None:
            return services.copy_items(**whose, item_ids=[_id(row) for row in rows])
        keys = [
            RequestCursor(row.requested_at, row.request_id)
            for row in rows
            if row.request_id is not None and row.requested_at is not None
        ]
        return services.add_found(of_keys, keys, **whose)

    @property
    def _candidates(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.experiment.candidates
        return found

    def _rows(self) -> Iterator[ExperimentItem]:
        rows = ExperimentItem.objects.filter(experiment=self.experiment).order_by("position")
        if self.positions:
            rows = rows.filter(position__in=self.positions)
        found = [row for row in rows if row.request_id is not None or row.dataset_item_id is not None]
        if not found:
            raise ValidationError("The experiment has no such items any more.")
        yield from found

    def _answers(self, rows: Sequence[ExperimentItem], expected: str) -> dict[UUID, str]:
        labels = {row.pk: row.winner if expected == WINNER else expected for row in rows}
        wanted = {pk: LABELS.index(label) for pk, label in labels.items() if label in LABELS}
        if not wanted:
            return {}
        answers = ExperimentAnswer.objects.filter(item__in=list(wanted), repeat=1, answer__isnull=False)
        texts = {
            item_id: text
            for item_id, candidate, answer in answers.values_list("item_id", "candidate", "answer")
            if wanted.get(item_id) == candidate and isinstance(text := (answer or {}).get("content"), str) and text
        }
        return {_id(row): texts[row.pk] for row in rows if row.pk in texts}


def read_positions(text: str) -> list[int]:
    parts = [part for part in text.split(",")[:_MAX_POSITIONS] if part.isascii() and part.isdecimal() and len(part) < 5]
    return sorted({int(part) for part in parts})


def _id(row: ExperimentItem) -> UUID:
    found = row.dataset_item_id or row.request_id
    if found is None:
        raise ValueError("the item has no input")
    return found
