"""Makes, cancels and deletes experiments, and notes which answers a person prefers."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from analytics.queries.request_filters import RequestFilter
from analytics.queries.request_samples import SampledRequest, SampleOrder, sample_requests
from gateway.experiments.candidates import NewCandidate, resolved, stored_form
from gateway.experiments.errors import (
    ExperimentEndedError,
    ExperimentItemNotFoundError,
    ExperimentNotFoundError,
    NoItemsError,
    TooManyExperimentsError,
)
from gateway.models import Experiment, ExperimentAnswer, ExperimentItem
from gateway.tables.experiment import UNFINISHED, AnswerState, ExperimentState

logger = logging.getLogger("gateway.experiments")

MAX_ITEMS = 200
MAX_UNFINISHED_EXPERIMENTS = 5
_MAX_PREVIEW_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class NewExperiment:
    """An experiment as it is asked for. `parameters` are those that `filters` were made of, to be shown later."""

    candidates: Sequence[NewCandidate]
    filters: RequestFilter
    item_limit: int
    order: SampleOrder = SampleOrder.NEWEST
    judge: bool = False
    name: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)


def create_experiment(*, project_id: UUID, new: NewExperiment, actor: str) -> Experiment:
    """Makes an experiment, which a worker runs soon. Raises ValidationError, NoItemsError, TooManyExperimentsError."""
    candidates = resolved(project_id, new.candidates)
    if Experiment.objects.for_project(project_id).filter(state__in=UNFINISHED).count() >= MAX_UNFINISHED_EXPERIMENTS:
        raise TooManyExperimentsError(MAX_UNFINISHED_EXPERIMENTS)
    sample = sample_requests(project_id, new.filters, new.order, limit=new.item_limit)
    if not sample:
        raise NoItemsError
    with transaction.atomic():
        experiment = Experiment.objects.create(
            project_id=project_id,
            name=new.name or " or ".join(candidate.title for candidate in candidates)[:200],
            created_by=actor,
            candidates=stored_form(candidates),
            filter=dict(new.parameters),
            order=str(new.order),
            item_limit=new.item_limit,
            judge=new.judge,
        )
        items = ExperimentItem.objects.bulk_create([_item(experiment, *item) for item in enumerate(sample, start=1)])
        ExperimentAnswer.objects.bulk_create(
            [ExperimentAnswer(item=past, candidate=index) for past in items for index in range(len(candidates))]
        )
    logger.info(
        "experiment.created project_id=%s experiment_id=%s items=%d actor=%s",
        project_id,
        experiment.pk,
        len(items),
        actor,
    )
    return experiment


def cancel_experiment(*, project_id: UUID, experiment_id: UUID, actor: str) -> None:
    """Ends an experiment; calls of providers that are under way are hung up within seconds. Raises
    ExperimentNotFoundError and ExperimentEndedError."""
    if not end_experiment(_experiment(project_id, experiment_id).pk, ExperimentState.CANCELLED):
        raise ExperimentEndedError
    logger.info("experiment.cancelled project_id=%s experiment_id=%s actor=%s", project_id, experiment_id, actor)


def end_experiment(experiment_id: UUID, state: ExperimentState, failure: str = "") -> bool:
    """Moves an experiment into a final state once, and returns whether this call did. Answers that are not done are
    cancelled."""
    with transaction.atomic():
        ended = Experiment.objects.filter(pk=experiment_id, state__in=UNFINISHED).update(
            state=state, failure=failure[:1000], ended_at=timezone.now(), claimed_until=None
        )
        if ended:
            left = ExperimentAnswer.objects.filter(item__experiment_id=experiment_id).exclude(state=AnswerState.DONE)
            left.update(state=AnswerState.CANCELLED)
    return bool(ended)


def pick_winner(*, project_id: UUID, experiment_id: UUID, position: int, winner: str, actor: str) -> ExperimentItem:
    """Notes the label of the better answer, `tie`, or nothing with an empty text. Raises ExperimentNotFoundError and
    ExperimentItemNotFoundError."""
    past = ExperimentItem.objects.filter(experiment=_experiment(project_id, experiment_id), position=position).first()
    if past is None:
        raise ExperimentItemNotFoundError
    past.winner, past.winner_by = winner, actor if winner else ""
    past.save(update_fields=["winner", "winner_by"])
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


def _item(experiment: Experiment, position: int, row: SampledRequest) -> ExperimentItem:
    return ExperimentItem(
        experiment=experiment,
        position=position,
        request_id=row.request_id,
        requested_at=row.ts,
        preview=row.prompt_preview.replace("\x00", "")[:_MAX_PREVIEW_CHARACTERS],
        prompt_config_id=row.prompt_config_id if row.prompt_config_id.int else None,
        prompt_version=row.prompt_version,
    )
