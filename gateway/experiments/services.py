from __future__ import annotations

import logging
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from analytics.queries.request_samples import SampleOrder
from core.resources.rows import get_or_raise
from gateway.experiments import candidates, evaluators, report, reuse
from gateway.experiments.errors import (
    ExperimentEndedError,
    ExperimentItemNotFoundError,
    ExperimentNotFoundError,
    NoItemsError,
    TooManyExperimentsError,
)
from gateway.experiments.plan import NewExperiment, Plan, plan_experiment
from gateway.models import Experiment, ExperimentAnswer, ExperimentItem
from gateway.tables.experiment import (
    NAME_CHARACTERS,
    UNFINISHED,
    AnswerState,
    ExperimentFailure,
    ExperimentState,
)

logger = logging.getLogger("gateway.experiments")

MAX_UNFINISHED_EXPERIMENTS = 5
_ROWS_AT_ONCE = 1_000
_AS_ASKED = ("item_limit", "judge", "repeats", "margin", "reuse", "max_cost_usd")


def create_experiment(*, project_id: UUID, new: NewExperiment, actor: str) -> Experiment:
    """A worker runs the experiment soon. Raises ValidationError, NoItemsError, TooManyExperimentsError."""
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
        if experiment.reuse and any(candidate.application for candidate in plan.candidates):
            # The application learns at once which answers it has still to send.
            reuse.reuse_answers(experiment)
    logger.info(
        "experiment.created project_id=%s experiment_id=%s items=%d actor=%s",
        project_id,
        experiment.pk,
        len(items),
        actor,
    )
    return experiment


def _experiment_of(project_id: UUID, new: NewExperiment, plan: Plan, actor: str) -> Experiment:
    dataset = plan.dataset
    return Experiment.objects.create(
        project_id=project_id,
        name=new.name or " or ".join(candidate.title for candidate in plan.candidates)[:NAME_CHARACTERS],
        created_by=actor,
        candidates=candidates.stored_form(plan.candidates),
        filter=dict(new.parameters),
        # The items of a data set are drawn by their hash, which is a random order.
        order=str(new.order if dataset is None else SampleOrder.RANDOM),
        dataset_id=dataset.dataset.pk if dataset is not None else None,
        dataset_name=dataset.dataset.name if dataset is not None else "",
        dataset_version=dataset.number if dataset is not None else 0,
        evaluators=evaluators.stored_form(plan.evaluators),
        baseline=plan.baseline,
        **{name: getattr(new, name) for name in _AS_ASKED},
    )


def cancel_experiment(*, project_id: UUID, experiment_id: UUID, actor: str) -> None:
    """Providers' calls under way are hung up within seconds. Raises ExperimentNotFoundError, ExperimentEndedError."""
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
    """Ends an experiment once; returns whether this call did. Cancels open answers and writes the report."""
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
    """`winner` is a label, `tie`, or empty to clear it. Raises ExperimentNotFoundError, ExperimentItemNotFoundError."""
    items = ExperimentItem.objects.filter(experiment=_experiment(project_id, experiment_id))
    past = get_or_raise(items, ExperimentItemNotFoundError, position=position)
    past.winner, past.winner_by = winner, actor if winner else ""
    past.save(update_fields=["winner", "winner_by"])
    report.keep_summary(experiment_id)
    return past


def delete_experiment(*, project_id: UUID, experiment_id: UUID, actor: str) -> None:
    """A running experiment ends. Raises ExperimentNotFoundError."""
    _experiment(project_id, experiment_id).delete()
    logger.info("experiment.deleted project_id=%s experiment_id=%s actor=%s", project_id, experiment_id, actor)


def _experiment(project_id: UUID, experiment_id: UUID) -> Experiment:
    return get_or_raise(Experiment.objects.for_project(project_id), ExperimentNotFoundError, pk=experiment_id)
