"""Refuses a largest cost where what a request may cost at most cannot be said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

import msgspec

from analytics.evaluators.definitions import Definition, Judge, Pairwise, Similarity
from core.errors import ValidationError
from gateway.evaluations.highest_cost import highest_cost
from gateway.experiments.candidates import Candidate
from gateway.experiments.draw import DatasetVersion, Drawn, parameters_of
from gateway.protocol.wire import AUTO
from gateway.selectors import project_settings
from gateway.snapshot.loader import load_models, load_prices
from gateway.snapshot.project import ProjectSnapshot
from prompts.selectors import PromptVersionRecord, version_records


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
        problem = (
            f"What a request to {fields['model']} costs at most cannot be said, so that max_cost_usd cannot be kept:"
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
