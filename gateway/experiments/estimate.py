"""Estimates what an experiment will cost, from what its items cost when they were requests."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import cast
from uuid import UUID

from analytics.queries.request_samples import SampledRequest, sample_requests
from gateway.experiments import shapes
from gateway.experiments.candidates import Candidate, resolved
from gateway.experiments.services import NewExperiment
from gateway.selectors import model_groups
from integrations.pricing.selectors import applied_price
from integrations.registry import resolve
from integrations.selectors import enabled_credentials

_MILLION = Decimal(1_000_000)


def estimate(project_id: UUID, new: NewExperiment) -> shapes.ExperimentEstimate:
    """Returns the number of items and the cost of each candidate, as far as prices are known; judges are not
    included. Raises ValidationError."""
    candidates = resolved(project_id, new.candidates)
    sample = sample_requests(project_id, new.filters, new.order, limit=new.item_limit)
    costs = [_cost(project_id, candidate, sample) for candidate in candidates]
    known = [cost for cost in costs if cost is not None]
    times = [row.ts for row in sample]
    return {
        "item_count": len(sample),
        "newest_at": max(times, default=None),
        "oldest_at": min(times, default=None),
        "candidates": [
            {
                "label": cast(shapes.Label, candidate.label),
                "title": candidate.title,
                "cost_usd": None if cost is None else float(cost),
            }
            for candidate, cost in zip(candidates, costs, strict=True)
        ],
        "total_cost_usd": float(sum(known, Decimal(0))) if len(known) == len(costs) else None,
    }


def _cost(project_id: UUID, candidate: Candidate, sample: Sequence[SampledRequest]) -> Decimal | None:
    """Returns what the candidate will cost, by the tokens of the past answers; None when that is not known."""
    if not sample:
        return Decimal(0)
    if not candidate.model:
        known = [row.cost_usd for row in sample if row.cost_known]
        return sum(known, Decimal(0)) / len(known) * len(sample) if known else None
    enabled = {credentials.provider for credentials in enabled_credentials(project_id)}
    group = model_groups(project_id).get(candidate.model)
    models = group.weights if group is not None else (candidate.model,)
    found = [first for model in models for first in resolve(model, enabled)]
    price = applied_price(project_id, found[0].provider, found[0].upstream_model) if found else None
    if price is None or price.input_cost_per_1m is None or price.output_cost_per_1m is None:
        return None
    prompt, completion = sum(row.prompt_tokens for row in sample), sum(row.completion_tokens for row in sample)
    return (prompt * price.input_cost_per_1m + completion * price.output_cost_per_1m) / _MILLION
