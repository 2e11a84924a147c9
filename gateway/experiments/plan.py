from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from uuid import UUID

from analytics.evaluators.definitions import Definition
from analytics.queries.request_filters import RequestFilter
from analytics.queries.request_samples import SampleOrder
from core.errors import ValidationError
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
from gateway.experiments.errors import invalid
from gateway.experiments.evaluators import ExperimentEvaluator, NewEvaluator, definitions_of
from gateway.experiments.known_costs import least_costs, require_room
from gateway.experiments.reuse import answer_key, count_kept
from gateway.models import ExperimentAnswer, ExperimentItem
from gateway.tables.experiment import LABELS, AnswerState

MAX_ITEMS = 1_000
MAX_ANSWERS = 10_000
DEFAULT_MARGIN = 0.1


def _asked(version: DatasetVersion | None, drawn: Drawn) -> Iterator[dict[str, Any]]:
    if version is None:
        for provider, model in dict.fromkeys((row.provider, row.model) for row in drawn.requests):
            yield {"model": f"{provider}/{model}" if provider else model}
        return
    yield from parameters_of(version, drawn)


@dataclass(frozen=True, slots=True)
class NewExperiment:
    """An experiment as requested.

    `parameters` are the source of `filters`, to be shown later; a data set uses neither, and defaults to its latest
    version. `baseline` is empty for no comparison.
    """

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
    candidates: Sequence[Candidate]
    evaluators: Sequence[ExperimentEvaluator]
    baseline: str
    dataset: DatasetVersion | None
    drawn: Drawn

    def answers(self, project_id: UUID, items: Sequence[ExperimentItem], repeats: int) -> Iterator[ExperimentAnswer]:
        """Yields an answer without its outcome for each item, candidate and repeat.

        Answers to past requests have no keys: the same request is seldom drawn twice.
        """
        hashes = self.drawn.input_hashes or [""] * len(items)
        for item, input_hash in zip(items, hashes, strict=True):
            for index, candidate in enumerate(self.candidates):
                state = AnswerState.AWAITED if candidate.application else AnswerState.PENDING
                for repeat in range(1, repeats + 1):
                    key = answer_key(project_id, candidate, item, input_hash, repeat) if input_hash else ""
                    yield ExperimentAnswer(item=item, candidate=index, repeat=repeat, key=key, state=state)


def plan_experiment(project_id: UUID, new: NewExperiment) -> Plan:
    """A plan without items if nothing matches. Raises ValidationError, which names the field."""
    chosen = candidates.resolved(project_id, new.candidates)
    _require_answerable(new)
    scoring = evaluators.resolved(project_id, new.evaluators)
    baseline = _baseline(new, scoring)
    version = version_of(project_id, new.dataset_id, new.dataset_version) if new.dataset_id is not None else None
    if version is not None:
        drawn = draw_dataset(version, limit=new.item_limit)
    else:
        drawn = draw_requests(project_id, new.filters, new.order, limit=new.item_limit)
    definitions = definitions_of(scoring)
    _require_expected(definitions, version, drawn)
    costs: Mapping[str, Decimal] = {}
    if new.max_cost_usd is not None:
        scored = zip(scoring, definitions, strict=True)
        costs = least_costs(project_id, chosen, list(_asked(version, drawn)), scored)
    count = len(drawn.items) * len(chosen) * new.repeats
    if count > MAX_ANSWERS:
        problem = f"{count:,} answers would be made, and an experiment has at most {MAX_ANSWERS:,}."
        raise ValidationError.of_field("repeats" if new.repeats > 1 else "item_limit", problem)
    plan = Plan(chosen, scoring, baseline, version, drawn)
    if new.max_cost_usd is not None and not _is_there(project_id, new, plan):
        require_room(new.max_cost_usd, costs)
    return plan


def _require_answerable(new: NewExperiment) -> None:
    for index, candidate in enumerate(new.candidates):
        if candidate.application and new.dataset_id is None:
            raise invalid("candidates", index, "An application answers the items of a data set only.", "application")
        if candidate.application and new.judge:
            problem = "It scores the gateway's own answers alone: name an evaluator for those of an application."
            raise ValidationError.of_field("judge", problem)


def _is_there(project_id: UUID, new: NewExperiment, plan: Plan) -> bool:
    if not new.reuse or plan.dataset is None:
        return False
    keys = {answer.key for answer in plan.answers(project_id, plan.drawn.items, new.repeats)}
    return count_kept(keys) == len(keys)


def _baseline(new: NewExperiment, scoring: Sequence[ExperimentEvaluator]) -> str:
    if new.baseline and new.baseline not in LABELS[: len(new.candidates)]:
        raise ValidationError.of_field("baseline", "No candidate has this label.")
    baseline = new.baseline if len(new.candidates) > 1 and scoring else ""
    for index, evaluator in enumerate(scoring):
        if evaluator.is_pairwise and not baseline:
            raise invalid(
                "evaluators", index, "It compares answers with those of a baseline: name one, and two candidates."
            )
    return baseline


def _require_expected(definitions: Sequence[Definition], version: DatasetVersion | None, drawn: Drawn) -> None:
    needing = [place for place, one in enumerate(definitions) if one.needs_expected]
    if needing and drawn.items and (version is None or not some_expected(version, drawn)):
        raise invalid("evaluators", needing[0], "It needs expected answers, and none of the items has one.")
