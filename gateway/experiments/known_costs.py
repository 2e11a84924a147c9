from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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


def least_costs(
    project_id: UUID,
    candidates: Sequence[Candidate],
    asked: Sequence[dict[str, Any]],
    scoring: Iterable[tuple[ExperimentEvaluator, Definition]],
) -> dict[str, Decimal]:
    """Returns what is reserved for the shortest request of each candidate and evaluator, by its name for people.
    `asked` is what decides on the cost of items. Raises ValidationError, which names the one of whom nobody can say
    it."""
    snapshot = load_models(project_id, load_prices(), project_settings(project_id))
    records = version_records({UUID(one.version_id) for one in candidates if one.version_id})
    found: dict[str, Decimal] = {}
    for index, candidate in enumerate(candidates):
        if candidate.application:
            continue
        record = records.get(UUID(candidate.version_id)) if candidate.version_id else None
        with _naming(f"candidates.{index}", f"the candidate {candidate.label}"):
            amounts = [_of_candidate(snapshot, candidate, fields, record) for fields in asked]
        found[f"the candidate {candidate.label}"] = max(amounts, default=NOTHING)
    for index, (evaluator, definition) in enumerate(scoring):
        with _naming(f"evaluators.{index}", f"the evaluator {evaluator.title}"):
            found[f"the evaluator {evaluator.title}"] = _of_evaluator(snapshot, definition)
    return found


def require_room(limit: Decimal, costs: Mapping[str, Decimal]) -> None:
    """Raises ValidationError where one request may cost more than the whole experiment."""
    for name, amount in costs.items():
        if amount > limit:
            problem = (
                f"A request of {name} may cost up to ${amount.normalize():f}, more than this is for all of"
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
