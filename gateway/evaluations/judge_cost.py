from __future__ import annotations

from decimal import Decimal
from uuid import UUID

import msgspec

from analytics.evaluators.definitions import Definition, Judge, Pairwise
from gateway.evaluations.highest_cost import UnknownCostError, known_highest_cost
from gateway.judging.form import form_of
from gateway.selectors import project_settings
from gateway.snapshot.loader import load_models, load_prices
from gateway.snapshot.project import ProjectSnapshot


def judge_problem(project_id: UUID, definition: Definition) -> str:
    """Why no budget can be kept with the definition's judge; empty if one can."""
    if not isinstance(definition, Judge | Pairwise):
        return ""
    settings = project_settings(project_id)
    model = definition.model or settings.judge_model
    if not model:
        return "It names no model, and the project has no `judge_model`."
    snapshot = load_models(project_id, load_prices(), settings)
    try:
        least_cost(snapshot, definition, model)
    except UnknownCostError as problem:
        return f"What a request to {model} costs at most cannot be said, so that no budget can be kept: {problem}."
    return ""


def least_cost(snapshot: ProjectSnapshot, definition: Judge | Pairwise, model: str) -> Decimal:
    """The reservation for the judge's shortest request. Raises UnknownCostError."""
    limit = form_of(snapshot, model, definition.max_tokens).max_tokens
    return known_highest_cost(snapshot, msgspec.json.encode({"model": model, "max_completion_tokens": limit}))
