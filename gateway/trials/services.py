"""Makes, cancels and deletes trials, and notes which answers a person prefers."""

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
from gateway.models import Trial, TrialAnswer, TrialInput
from gateway.tables.trial import UNFINISHED, AnswerState, TrialState
from gateway.trials.candidates import NewCandidate, resolved, stored_form
from gateway.trials.errors import (
    NoInputsError,
    TooManyTrialsError,
    TrialEndedError,
    TrialInputNotFoundError,
    TrialNotFoundError,
)

logger = logging.getLogger("gateway.trials")

MAX_INPUTS = 200
MAX_UNFINISHED_TRIALS = 5
_MAX_PREVIEW_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class NewTrial:
    """A trial as it is asked for. `parameters` are those that `filters` were made of, to be shown later."""

    candidates: Sequence[NewCandidate]
    filters: RequestFilter
    input_limit: int
    order: SampleOrder = SampleOrder.NEWEST
    judge: bool = False
    name: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)


def create_trial(*, project_id: UUID, new: NewTrial, actor: str) -> Trial:
    """Makes a trial, which a worker runs soon. Raises ValidationError, NoInputsError, TooManyTrialsError."""
    candidates = resolved(project_id, new.candidates)
    if Trial.objects.for_project(project_id).filter(state__in=UNFINISHED).count() >= MAX_UNFINISHED_TRIALS:
        raise TooManyTrialsError(MAX_UNFINISHED_TRIALS)
    sample = sample_requests(project_id, new.filters, new.order, limit=new.input_limit)
    if not sample:
        raise NoInputsError
    with transaction.atomic():
        trial = Trial.objects.create(
            project_id=project_id,
            name=new.name or " or ".join(candidate.title for candidate in candidates)[:200],
            created_by=actor,
            candidates=stored_form(candidates),
            filter=dict(new.parameters),
            order=str(new.order),
            input_limit=new.input_limit,
            judge=new.judge,
        )
        inputs = TrialInput.objects.bulk_create([_input(trial, *item) for item in enumerate(sample, start=1)])
        TrialAnswer.objects.bulk_create(
            [TrialAnswer(input=past, candidate=index) for past in inputs for index in range(len(candidates))]
        )
    logger.info("trial.created project_id=%s trial_id=%s inputs=%d actor=%s", project_id, trial.pk, len(inputs), actor)
    return trial


def cancel_trial(*, project_id: UUID, trial_id: UUID, actor: str) -> None:
    """Ends a trial; calls of providers that are under way are hung up within seconds. Raises TrialNotFoundError and
    TrialEndedError."""
    if not end_trial(_trial(project_id, trial_id).pk, TrialState.CANCELLED):
        raise TrialEndedError
    logger.info("trial.cancelled project_id=%s trial_id=%s actor=%s", project_id, trial_id, actor)


def end_trial(trial_id: UUID, state: TrialState, failure: str = "") -> bool:
    """Moves a trial into a final state once, and returns whether this call did. Answers that are not done are
    cancelled."""
    with transaction.atomic():
        ended = Trial.objects.filter(pk=trial_id, state__in=UNFINISHED).update(
            state=state, failure=failure[:1000], ended_at=timezone.now(), claimed_until=None
        )
        if ended:
            left = TrialAnswer.objects.filter(input__trial_id=trial_id).exclude(state=AnswerState.DONE)
            left.update(state=AnswerState.CANCELLED)
    return bool(ended)


def pick_winner(*, project_id: UUID, trial_id: UUID, position: int, winner: str, actor: str) -> TrialInput:
    """Notes the label of the better answer, `tie`, or nothing with an empty text. Raises TrialNotFoundError and
    TrialInputNotFoundError."""
    past = TrialInput.objects.filter(trial=_trial(project_id, trial_id), position=position).first()
    if past is None:
        raise TrialInputNotFoundError
    past.winner, past.winner_by = winner, actor if winner else ""
    past.save(update_fields=["winner", "winner_by"])
    return past


def delete_trial(*, project_id: UUID, trial_id: UUID, actor: str) -> None:
    """Deletes a trial with its answers; one that runs ends. Raises TrialNotFoundError."""
    _trial(project_id, trial_id).delete()
    logger.info("trial.deleted project_id=%s trial_id=%s actor=%s", project_id, trial_id, actor)


def _trial(project_id: UUID, trial_id: UUID) -> Trial:
    trial = Trial.objects.for_project(project_id).filter(pk=trial_id).first()
    if trial is None:
        raise TrialNotFoundError
    return trial


def _input(trial: Trial, position: int, row: SampledRequest) -> TrialInput:
    return TrialInput(
        trial=trial,
        position=position,
        request_id=row.request_id,
        requested_at=row.ts,
        preview=row.prompt_preview.replace("\x00", "")[:_MAX_PREVIEW_CHARACTERS],
        prompt_config_id=row.prompt_config_id if row.prompt_config_id.int else None,
        prompt_version=row.prompt_version,
    )
