"""Whether the cost of a judge's request is bounded, without which no budget can be kept."""

from __future__ import annotations

from uuid import UUID

import msgspec

from analytics.evaluators.definitions import Definition, Judge, Pairwise
from gateway.evaluations.highest_cost import highest_cost
from gateway.selectors import project_settings
from gateway.snapshot.loader import load_models, load_prices


def judge_problem(project_id: UUID, definition: Definition) -> str:
    """An `analytics.online_evaluations.judge_cost.JudgeProblem`."""
    if not isinstance(definition, Judge | Pairwise):
        return ""
    settings = project_settings(project_id)
    model = definition.model or settings.judge_model
    if not model:
        return "It names no model, and the project has no `judge_model`."
    snapshot = load_models(project_id, load_prices(), settings)
    if highest_cost(snapshot, msgspec.json.encode({"model": model})) is not None:
        return ""
    return (
        f"What a request to {model} costs at most cannot be said, so that no budget can be kept: its price, or how much"
        " it may answer, is not known."
    )
