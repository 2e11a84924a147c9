"""Estimates what an experiment will cost, from what its items cost when they were requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol, cast
from uuid import UUID

from analytics.queries.requests import get_requests
from gateway.experiments import shapes
from gateway.experiments.candidates import Candidate
from gateway.experiments.draw import Drawn
from gateway.experiments.evaluators import definitions_of
from gateway.experiments.judge_estimate import Judging, count_scored, judge_cost, judged_by, project_judge
from gateway.experiments.plan import NewExperiment, Plan, plan_experiment
from gateway.experiments.reuse import count_kept
from gateway.selectors import model_groups, project_settings
from gateway.snapshot.loader import load_models, load_prices
from gateway.tables.experiment import LABELS
from integrations.pricing.selectors import applied_price
from integrations.registry import resolve
from integrations.selectors import enabled_credentials

_MILLION = Decimal(1_000_000)


class _Past(Protocol):
    """What a request of the log used and cost; `cost_usd` is 0 when it is not known."""

    @property
    def prompt_tokens(self) -> int: ...
    @property
    def completion_tokens(self) -> int: ...
    @property
    def cost_known(self) -> bool: ...
    @property
    def cost_usd(self) -> Decimal: ...


@dataclass(frozen=True, slots=True)
class _Sample:
    """The requests that items were made of, and the number of answers that each candidate would give."""

    requests: Sequence[_Past]
    answers: int


def estimate(project_id: UUID, new: NewExperiment) -> shapes.ExperimentEstimate:
    """Returns the number of items and the cost of each candidate and judge, as far as prices are known; answers and
    scores that are there already cost nothing. Raises ValidationError."""
    plan = plan_experiment(project_id, new)
    items = plan.drawn.items
    by_candidate: list[list[str]] = [[] for _ in plan.candidates]
    for answer in plan.answers(project_id, items, new.repeats):
        by_candidate[answer.candidate].append(answer.key)
    kept = [count_kept(keys) if new.reuse else 0 for keys in by_candidate]
    past = _past(project_id, plan.drawn)
    costs = [
        _cost(project_id, candidate, _Sample(past, len(keys) - reused))
        for candidate, keys, reused in zip(plan.candidates, by_candidate, kept, strict=True)
    ]
    snapshot = load_models(project_id, load_prices(), project_settings(project_id))
    judging = _judging(new, plan, by_candidate, past, reused=sum(kept))
    of_judges = [judge_cost(snapshot, one) for one in judging]
    all_costs = [*costs, *of_judges]
    known = [cost for cost in all_costs if cost is not None]
    times = [item.requested_at for item in items if item.requested_at is not None]
    return {
        "item_count": len(items),
        "answer_count": sum(map(len, by_candidate)),
        "reused_answer_count": sum(kept),
        "newest_at": max(times, default=None),
        "oldest_at": min(times, default=None),
        "candidates": [
            {
                "label": cast(shapes.Label, candidate.label),
                "title": candidate.title,
                "cost_usd": None if cost is None else float(cost),
            }
            for candidate, cost in zip(plan.candidates, costs, strict=True)
        ],
        "judges": [
            {"title": one.title, "model": judged_by(snapshot, one), "cost_usd": None if cost is None else float(cost)}
            for one, cost in zip(judging, of_judges, strict=True)
        ],
        "total_cost_usd": float(sum(known, Decimal(0))) if len(known) == len(all_costs) else None,
    }


def _judging(
    new: NewExperiment, plan: Plan, by_candidate: Sequence[Sequence[str]], past: Sequence[_Past], *, reused: int
) -> list[Judging]:
    """Returns what everyone has to score who asks a model."""
    used = sum(row.prompt_tokens + row.completion_tokens for row in past)
    mean = used // len(past) if past else 0
    found = []
    for evaluator, definition in zip(plan.evaluators, definitions_of(plan.evaluators), strict=True):
        if not definition.asks_a_model:
            continue
        keys = [
            key
            for label, some in zip(LABELS, by_candidate, strict=False)
            if not (evaluator.is_pairwise and label == plan.baseline)
            for key in some
        ]
        scored = count_scored(keys, evaluator.version_id) if new.reuse else 0
        found.append(Judging(evaluator.title, definition, len(keys) - scored, mean))
    if new.judge:
        found.append(project_judge(sum(map(len, by_candidate)) - reused, mean))
    return found


def _past(project_id: UUID, drawn: Drawn) -> Sequence[_Past]:
    if drawn.requests:
        return drawn.requests
    keys = [
        (item.requested_at, item.request_id)
        for item in drawn.items
        if item.request_id is not None and item.requested_at is not None
    ]
    return get_requests(project_id, keys)


def _cost(project_id: UUID, candidate: Candidate, sample: _Sample) -> Decimal | None:
    """Returns what the candidate will cost, by the tokens of the past answers; None when that is not known."""
    if not sample.answers:
        return Decimal(0)
    if not sample.requests:
        return None
    if not candidate.model:
        known = [row.cost_usd for row in sample.requests if row.cost_known]
        return sum(known, Decimal(0)) / len(known) * sample.answers if known else None
    enabled = {credentials.provider for credentials in enabled_credentials(project_id)}
    group = model_groups(project_id).get(candidate.model)
    models = group.weights if group is not None else (candidate.model,)
    found = [first for model in models for first in resolve(model, enabled)]
    price = applied_price(project_id, found[0].provider, found[0].upstream_model) if found else None
    if price is None or price.input_cost_per_1m is None or price.output_cost_per_1m is None:
        return None
    prompt = sum(row.prompt_tokens for row in sample.requests)
    completion = sum(row.completion_tokens for row in sample.requests)
    of_all = (prompt * price.input_cost_per_1m + completion * price.output_cost_per_1m) / _MILLION
    return of_all / len(sample.requests) * sample.answers
