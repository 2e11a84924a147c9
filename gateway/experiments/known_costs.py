"""Whether an experiment can keep its largest cost: what each of its requests may cost has to be known, and to fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec

from analytics.evaluators.definitions import Definition, Judge, Pairwise, Similarity
from core.errors import ValidationError
from core.ledger import NOTHING
from gateway.evaluations.highest_cost import UnknownCostError, known_highest_cost
from gateway.evaluations.judge_cost import least_cost
from gateway.experiments.candidates import Candidate
from gateway.experiments.evaluators import ExperimentEvaluator
from gateway.protocol.wire import AUTO
from gateway.selectors import project_settings
from gateway.snapshot.loader import load_models, load_prices
from gateway.snapshot.project import ProjectSnapshot
from prompts.selectors import PromptVersionRecord, version_records


@dataclass(frozen=True, slots=True)
class Least:
    """What is reserved for the shortest request of a candidate or an evaluator, which `name` names to people."""

    name: str
    amount: Decimal


def least_costs(
    project_id: UUID,
    candidates: Sequence[Candidate],
    asked: Sequence[dict[str, Any]],
    scoring: Iterable[tuple[ExperimentEvaluator, Definition]],
) -> list[Least]:
    """Returns one for each candidate and each evaluator that asks a model. `asked` is what decides on the cost of
    items. Raises ValidationError, which names the one of whom nobody can say it."""
    snapshot = load_models(project_id, load_prices(), project_settings(project_id))
    records = version_records({UUID(one.version_id) for one in candidates if one.version_id})
    found = []
    for index, candidate in enumerate(candidates):
        record = records.get(UUID(candidate.version_id)) if candidate.version_id else None
        with _naming(f"candidates.{index}", f"the candidate {candidate.label}"):
            amounts = [_of_candidate(snapshot, candidate, fields, record) for fields in asked]
        found.append(Least(f"the candidate {candidate.label}", max(amounts, default=NOTHING)))
    for index, (evaluator, definition) in enumerate(scoring):
        with _naming(f"evaluators.{index}", f"the evaluator {evaluator.title}"):
            found.append(Least(f"the evaluator {evaluator.title}", _of_evaluator(snapshot, definition)))
    return found


def require_room(limit: Decimal, costs: Iterable[Least]) -> None:
    """Raises ValidationError where one request may cost more than the whole experiment."""
    for least in costs:
        if least.amount > limit:
            problem = (
                f"A request of {least.name} may cost up to ${least.amount.normalize():f}, more than this is for all of"
                " them: raise this, or lower its `max_tokens`."
            )
            raise ValidationError.of_field("max_cost_usd", problem)


@contextmanager
def _naming(field: str, name: str) -> Iterator[None]:
    try:
        yield
    except UnknownCostError as problem:
        words = (
            f"What a request of {name} costs at most cannot be said, so that max_cost_usd cannot be kept: {problem}."
        )
        raise ValidationError.of_field(field, words) from None


def _of_candidate(
    snapshot: ProjectSnapshot, candidate: Candidate, fields: dict[str, Any], record: PromptVersionRecord | None
) -> Decimal:
    own = {**fields, "model": candidate.model or fields.get("model") or AUTO}
    if candidate.model:
        own.pop("models", None)
    if candidate.max_tokens is not None:
        own["max_tokens"] = candidate.max_tokens
    return known_highest_cost(snapshot, msgspec.json.encode(own), record)


def _of_evaluator(snapshot: ProjectSnapshot, definition: Definition) -> Decimal:
    if isinstance(definition, Similarity):
        return known_highest_cost(snapshot, msgspec.json.encode({"model": definition.model}), answers=False)
    if not isinstance(definition, Judge | Pairwise):
        return NOTHING
    model = definition.model or snapshot.settings.judge_model
    # A judge without a model gives no scores, which costs nothing.
    return least_cost(snapshot, definition, model) if model else NOTHING
