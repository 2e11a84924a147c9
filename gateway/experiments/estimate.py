from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import cast
from uuid import UUID

from analytics.evaluators.definitions import Definition, Judge, Pairwise, Similarity, model_of
from analytics.queries.request_cursor import RequestCursor
from analytics.queries.request_samples import SampledRequest
from analytics.queries.requests import RequestRow, get_requests
from core.chunks import chunks
from gateway.experiments import shapes
from gateway.experiments.candidates import Candidate
from gateway.experiments.draw import Drawn
from gateway.experiments.evaluators import definitions_of
from gateway.experiments.plan import NewExperiment, Plan, plan_experiment
from gateway.experiments.reuse import count_kept
from gateway.judging.form import candidates_for, may_think
from gateway.judging.rubric import CRITERIA
from gateway.models import ExperimentScore
from gateway.selectors import model_groups, project_settings
from gateway.snapshot.loader import load_models, load_prices
from gateway.snapshot.project import ProjectSnapshot
from gateway.tables.experiment import LABELS
from integrations.pricing.selectors import applied_price
from integrations.registry import resolve
from integrations.selectors import enabled_credentials

_MILLION = Decimal(1_000_000)
# Tokens of the instructions, of a grade with its reason, and of the thoughts of a model that has any.
_INSTRUCTIONS, _GRADE, _THOUGHTS = 400, 60, 500

_Past = SampledRequest | RequestRow


def estimate(project_id: UUID, new: NewExperiment) -> shapes.ExperimentEstimate:
    """Costs of each candidate and judge, where prices are known; existing answers and scores cost nothing. Raises
    ValidationError."""
    plan = plan_experiment(project_id, new)
    items = plan.drawn.items
    by_candidate: list[list[str]] = [[] for _ in plan.candidates]
    for answer in plan.answers(project_id, items, new.repeats):
        by_candidate[answer.candidate].append(answer.key)
    kept = [count_kept(keys) if new.reuse else 0 for keys in by_candidate]
    past = _past(project_id, plan.drawn)
    costs = [
        _cost(project_id, candidate, past, len(keys) - reused)
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
        RequestCursor(item.requested_at, item.request_id)
        for item in drawn.items
        if item.request_id is not None and item.requested_at is not None
    ]
    return get_requests(project_id, keys)


def _cost(project_id: UUID, candidate: Candidate, past: Sequence[_Past], answers: int) -> Decimal | None:
    """Returns what so many answers will cost, by the tokens of the past ones; None when that is not known."""
    if not answers or candidate.application:
        return Decimal(0)
    if not past:
        return None
    if not candidate.model:
        known = [row.cost_usd for row in past if row.cost_known]
        return sum(known, Decimal(0)) / len(known) * answers if known else None
    enabled = {credentials.provider for credentials in enabled_credentials(project_id)}
    group = model_groups(project_id).get(candidate.model)
    models = group.weights if group is not None else (candidate.model,)
    found = [first for model in models for first in resolve(model, enabled)]
    price = applied_price(project_id, found[0].provider, found[0].upstream_model) if found else None
    if price is None or price.input_cost_per_1m is None or price.output_cost_per_1m is None:
        return None
    prompt = sum(row.prompt_tokens for row in past)
    completion = sum(row.completion_tokens for row in past)
    of_all = (prompt * price.input_cost_per_1m + completion * price.output_cost_per_1m) / _MILLION
    return of_all / len(past) * answers


@dataclass(frozen=True, slots=True)
class Judging:
    title: str
    definition: Definition
    answers: int
    mean_tokens: int


def judged_by(snapshot: ProjectSnapshot, judging: Judging) -> str:
    return model_of(judging.definition) or snapshot.settings.judge_model


def project_judge(answers: int, mean_tokens: int) -> Judging:
    return Judging("judge_model", Judge(criteria=[]), answers, mean_tokens)


def count_scored(keys: Iterable[str], version_id: UUID | str) -> int:
    wanted: Sequence[str] = [key for key in keys if key]
    found: set[str] = set()
    for some in chunks(wanted):
        rows = ExperimentScore.objects.filter(answer__key__in=some, value__isnull=False)
        scores = rows.values_list("answer__key", "evaluator", "answer__item__experiment__evaluators")
        found |= {key for key, place, used in scores if used[place]["version_id"] == str(version_id)}
    return len(found)


def judge_cost(snapshot: ProjectSnapshot, judging: Judging) -> Decimal | None:
    model = judged_by(snapshot, judging)
    if not judging.answers or not model:
        return Decimal(0)
    candidate = next(candidates_for(snapshot, model), None)
    price = None if candidate is None else snapshot.price_of(candidate.provider, candidate.upstream_model)
    if price is None:
        return None
    prompt, completion = _tokens(snapshot, model, judging)
    return (price.input * prompt + price.output * completion) * judging.answers / _MILLION


def _tokens(snapshot: ProjectSnapshot, model: str, judging: Judging) -> tuple[int, int]:
    definition = judging.definition
    if isinstance(definition, Similarity):
        return judging.mean_tokens, 0
    prompt = _INSTRUCTIONS + judging.mean_tokens
    thoughts = _THOUGHTS if any(map(may_think, candidates_for(snapshot, model))) else 0
    if isinstance(definition, Pairwise):
        # Two answers are compared in both orders.
        return 2 * prompt, 2 * (_GRADE + thoughts)
    count = len(definition.criteria) if isinstance(definition, Judge) and definition.criteria else len(CRITERIA)
    return prompt, count * _GRADE + thoughts
