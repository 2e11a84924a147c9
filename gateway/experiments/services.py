"""Makes, cancels and deletes experiments, and notes which answers a person prefers."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from analytics.evaluators.definitions import Definition
from analytics.queries.request_filters import RequestFilter
from analytics.queries.request_samples import SampleOrder
from core.errors import ValidationError
from gateway.experiments import candidates, evaluators, report
from gateway.experiments.candidates import Candidate, NewCandidate
from gateway.experiments.draw import DatasetVersion, Drawn, draw_dataset, draw_requests, some_expected, version_of
from gateway.experiments.errors import (
    ExperimentEndedError,
    ExperimentItemNotFoundError,
    ExperimentNotFoundError,
    NoItemsError,
    TooManyExperimentsError,
)
from gateway.experiments.evaluators import ExperimentEvaluator, NewEvaluator, definitions_of
from gateway.experiments.keys import answer_key
from gateway.experiments.known_costs import require_known_costs
from gateway.models import Experiment, ExperimentAnswer, ExperimentItem
from gateway.tables.experiment import (
    LABELS,
    NAME_CHARACTERS,
    UNFINISHED,
    AnswerState,
    ExperimentFailure,
    ExperimentState,
)

logger = logging.getLogger("gateway.experiments")

MAX_ITEMS = 1_000
MAX_ANSWERS = 10_000
MAX_UNFINISHED_EXPERIMENTS = 5
DEFAULT_MARGIN = 0.1
_ROWS_AT_ONCE = 1_000


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


def create_experiment(*, project_id: UUID, new: NewExperiment, actor: str) -> Experiment:
    """Makes an experiment, which a worker runs soon. Raises ValidationError, NoItemsError, TooManyExperimentsError."""
    unfinished = Experiment.objects.for_project(project_id).filter(state__in=UNFINISHED, rollout_id=None)
    if unfinished.count() >= MAX_UNFINISHED_EXPERIMENTS:
        raise TooManyExperimentsError(MAX_UNFINISHED_EXPERIMENTS)
    plan = plan_experiment(project_id, new)
    if not plan.drawn.items:
        raise NoItemsError if plan.dataset is None else NoItemsError("This version of the data set has no items.")
    with transaction.atomic():
        experiment = _experiment_of(project_id, new, plan, actor)
        for item in plan.drawn.items:
            item.experiment = experiment
        items = ExperimentItem.objects.bulk_create(plan.drawn.items, batch_size=_ROWS_AT_ONCE)
        ExperimentAnswer.objects.bulk_create(plan.answers(project_id, items, new.repeats), batch_size=_ROWS_AT_ONCE)
    logger.info(
        "experiment.created project_id=%s experiment_id=%s items=%d actor=%s",
        project_id,
        experiment.pk,
        len(items),
        actor,
    )
    return experiment


def _experiment_of(project_id: UUID, new: NewExperiment, plan: Plan, actor: str) -> Experiment:
    return Experiment.objects.create(
        project_id=project_id,
        name=new.name or " or ".join(candidate.title for candidate in plan.candidates)[:NAME_CHARACTERS],
        created_by=actor,
        candidates=candidates.stored_form(plan.candidates),
        filter=dict(new.parameters),
        # The items of a data set are drawn by their hash, which is a random order.
        order=str(new.order if plan.dataset is None else SampleOrder.RANDOM),
        item_limit=new.item_limit,
        dataset_id=plan.dataset.dataset.pk if plan.dataset is not None else None,
        dataset_name=plan.dataset.dataset.name if plan.dataset is not None else "",
        dataset_version=plan.dataset.number if plan.dataset is not None else 0,
        judge=new.judge,
        evaluators=evaluators.stored_form(plan.evaluators),
        repeats=new.repeats,
        baseline=plan.baseline,
        margin=new.margin,
        reuse=new.reuse,
        max_cost_usd=new.max_cost_usd,
    )


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


def cancel_experiment(*, project_id: UUID, experiment_id: UUID, actor: str) -> None:
    """Ends an experiment; calls of providers that are under way are hung up within seconds. Raises
    ExperimentNotFoundError and ExperimentEndedError."""
    if not end_experiment(_experiment(project_id, experiment_id).pk, ExperimentState.CANCELLED):
        raise ExperimentEndedError
    logger.info("experiment.cancelled project_id=%s experiment_id=%s actor=%s", project_id, experiment_id, actor)


def end_experiment(
    experiment_id: UUID,
    state: ExperimentState,
    failure: str = "",
    *,
    code: ExperimentFailure | None = None,
    stopped_early: bool = False,
) -> bool:
    """Moves an experiment into a final state once, and returns whether this call did. Answers that are not done are
    cancelled, and the report is written."""
    with transaction.atomic():
        ended = Experiment.objects.filter(pk=experiment_id, state__in=UNFINISHED).update(
            state=state,
            failure=failure[:1000],
            failure_code=code or "",
            stopped_early=stopped_early,
            ended_at=timezone.now(),
            claimed_until=None,
        )
        if ended:
            answers = ExperimentAnswer.objects.filter(item__experiment_id=experiment_id)
            answers.exclude(state=AnswerState.DONE).update(state=AnswerState.CANCELLED)
            done = answers.filter(state=AnswerState.DONE).count()
            Experiment.objects.filter(pk=experiment_id).update(done_answers=done)
            # No experiment has ended without its report, even if its worker dies here.
            report.conclude(experiment_id)
    return bool(ended)


def pick_winner(*, project_id: UUID, experiment_id: UUID, position: int, winner: str, actor: str) -> ExperimentItem:
    """Notes the label of the better answer, `tie`, or nothing with an empty text. Raises ExperimentNotFoundError and
    ExperimentItemNotFoundError."""
    past = ExperimentItem.objects.filter(experiment=_experiment(project_id, experiment_id), position=position).first()
    if past is None:
        raise ExperimentItemNotFoundError
    past.winner, past.winner_by = winner, actor if winner else ""
    past.save(update_fields=["winner", "winner_by"])
    report.keep_summary(experiment_id)
    return past


def delete_experiment(*, project_id: UUID, experiment_id: UUID, actor: str) -> None:
    """Deletes an experiment with its answers; one that runs ends. Raises ExperimentNotFoundError."""
    _experiment(project_id, experiment_id).delete()
    logger.info("experiment.deleted project_id=%s experiment_id=%s actor=%s", project_id, experiment_id, actor)


def _experiment(project_id: UUID, experiment_id: UUID) -> Experiment:
    experiment = Experiment.objects.for_project(project_id).filter(pk=experiment_id).first()
    if experiment is None:
        raise ExperimentNotFoundError
    return experiment
