"""Works out what an experiment would do: its candidates, evaluators and items, and what speaks against it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec

from analytics.evaluators.definitions import Definition, Judge, Pairwise, Similarity
from analytics.queries.request_filters import RequestFilter
from analytics.queries.request_samples import SampleOrder
from core.errors import ValidationError
from gateway.evaluations.highest_cost import highest_cost
from gateway.experiments import candidates, evaluators
from gateway.experiments.candidates import Candidate, NewCandidate
from gateway.experiments.draw import (
    DatasetVersion,
    Drawn,
    draw_dataset,
    draw_requests,
    parameters_of,
    some_expected,
    version_of,
)
from gateway.experiments.evaluators import ExperimentEvaluator, NewEvaluator, definitions_of
from gateway.experiments.keys import answer_key
from gateway.models import ExperimentAnswer, ExperimentItem
from gateway.protocol.wire import AUTO
from gateway.selectors import project_settings
from gateway.snapshot.loader import load_models, load_prices
from gateway.snapshot.project import ProjectSnapshot
from gateway.tables.experiment import LABELS
from prompts.selectors import PromptVersionRecord, version_records

MAX_ITEMS = 1_000
MAX_ANSWERS = 10_000
DEFAULT_MARGIN = 0.1


def require_known_costs(
    project_id: UUID,
    candidates: Sequence[Candidate],
    definitions: Sequence[Definition],
    version: DatasetVersion | None,
    drawn: Drawn,
) -> None:
    """Raises ValidationError, which names the candidate or the evaluator whose price or longest answer is unknown."""
    snapshot = load_models(project_id, load_prices(), project_settings(project_id))
    records = version_records({UUID(one.version_id) for one in candidates if one.version_id})
    asked = list(_asked(version, drawn))
    for index, candidate in enumerate(candidates):
        record = records.get(UUID(candidate.version_id)) if candidate.version_id else None
        for fields in asked:
            _require(snapshot, f"candidates.{index}", _fields_of(candidate, fields), record)
    for index, definition in enumerate(definitions):
        if isinstance(definition, Judge | Pairwise | Similarity):
            model = definition.model or snapshot.settings.judge_model
            # A judge without a model gives no scores, which costs nothing.
            if model:
                answers = not isinstance(definition, Similarity)
                _require(snapshot, f"evaluators.{index}", {"model": model}, answers=answers)


def _require(
    snapshot: ProjectSnapshot,
    field: str,
    fields: dict[str, Any],
    record: PromptVersionRecord | None = None,
    *,
    answers: bool = True,
) -> None:
    if highest_cost(snapshot, msgspec.json.encode(fields), record, answers=answers) is None:
        # The version's model is asked where the item names none.
        model = record.model if record is not None and record.model and fields["model"] == AUTO else fields["model"]
        problem = (
            f"What a request to {model} costs at most cannot be said, so that max_cost_usd cannot be kept:"
            " its price, or how much it may answer, is not known. max_tokens bounds an answer."
        )
        raise ValidationError.of_field(field, problem)


def _asked(version: DatasetVersion | None, drawn: Drawn) -> Iterator[dict[str, Any]]:
    """Yields what decides on the highest cost of items, each combination once."""
    if version is None:
        for provider, model in dict.fromkeys((row.provider, row.model) for row in drawn.requests):
            yield {"model": f"{provider}/{model}" if provider else model}
        return
    yield from parameters_of(version, drawn)


def _fields_of(candidate: Candidate, fields: dict[str, Any]) -> dict[str, Any]:
    own = {**fields, "model": candidate.model or fields.get("model") or AUTO}
    if candidate.model:
        own.pop("models", None)
    return own if candidate.max_tokens is None else {**own, "max_tokens": candidate.max_tokens}


@dataclass(frozen=True, slots=True)
class NewExperiment:
    """An experiment as it is asked for. `parameters` are those that `filters` were made of, to be shown later; neither
    is used with a data set, whose latest version counts where none is named. `baseline` is empty for no comparison."""

    candidates: Sequence[NewCandidate]
    filters: RequestFilter
    item_limit: int
    order: SampleOrder = SampleOrder.NEWEST
    judge: bool = False
    name: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    dataset_id: UUID | None = None
    dataset_version: int | None = None
    evaluators: Sequence[NewEvaluator] = ()
    repeats: int = 1
    baseline: str = LABELS[0]
    margin: float = DEFAULT_MARGIN
    reuse: bool = True
    max_cost_usd: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What an experiment would do: its items have no experiment yet."""

    candidates: Sequence[Candidate]
    evaluators: Sequence[ExperimentEvaluator]
    baseline: str
    dataset: DatasetVersion | None
    drawn: Drawn

    def answers(self, project_id: UUID, items: Sequence[ExperimentItem], repeats: int) -> Iterator[ExperimentAnswer]:
        """Yields an answer without its outcome for each item, candidate and repeat. Those to past requests have no
        keys: there the same request is seldom drawn twice."""
        hashes = self.drawn.input_hashes or [""] * len(items)
        for item, input_hash in zip(items, hashes, strict=True):
            for index, candidate in enumerate(self.candidates):
                for repeat in range(1, repeats + 1):
                    key = answer_key(project_id, candidate, item, input_hash, repeat) if input_hash else ""
                    yield ExperimentAnswer(item=item, candidate=index, repeat=repeat, key=key)


def plan_experiment(project_id: UUID, new: NewExperiment) -> Plan:
    """Returns what the experiment would do, which has no items where nothing matches. Raises ValidationError, which
    names the field."""
    chosen = candidates.resolved(project_id, new.candidates)
    scoring = evaluators.resolved(project_id, new.evaluators)
    baseline = _baseline(new, scoring)
    version = version_of(project_id, new.dataset_id, new.dataset_version) if new.dataset_id is not None else None
    if version is not None:
        drawn = draw_dataset(version, limit=new.item_limit)
    else:
        drawn = draw_requests(project_id, new.filters, new.order, limit=new.item_limit)
    definitions = definitions_of(scoring)
    _require_expected(definitions, version, drawn)
    if new.max_cost_usd is not None:
        require_known_costs(project_id, chosen, definitions, version, drawn)
    count = len(drawn.items) * len(chosen) * new.repeats
    if count > MAX_ANSWERS:
        problem = f"{count:,} answers would be made, and an experiment has at most {MAX_ANSWERS:,}."
        raise ValidationError.of_field("repeats" if new.repeats > 1 else "item_limit", problem)
    return Plan(chosen, scoring, baseline, version, drawn)


def _baseline(new: NewExperiment, scoring: Sequence[ExperimentEvaluator]) -> str:
    """Returns the label of the baseline, empty where there is nothing to compare."""
    if new.baseline and new.baseline not in LABELS[: len(new.candidates)]:
        raise ValidationError.of_field("baseline", "No candidate has this label.")
    baseline = new.baseline if len(new.candidates) > 1 and scoring else ""
    for index, evaluator in enumerate(scoring):
        if evaluator.is_pairwise and not baseline:
            raise evaluators.invalid(
                index, "It compares answers with those of a baseline: name one, and two candidates."
            )
    return baseline


def _require_expected(definitions: Sequence[Definition], version: DatasetVersion | None, drawn: Drawn) -> None:
    """Raises ValidationError for an evaluator that could score no answer."""
    needing = [place for place, one in enumerate(definitions) if one.needs_expected]
    if needing and drawn.items and (version is None or not some_expected(version, drawn)):
        raise evaluators.invalid(needing[0], "It needs expected answers, and none of the items has one.")
