"""Which worker has which experiment, and which answer is next: conditional updates, so that no two take the same."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import F, Q, QuerySet
from django.utils import timezone

from gateway.experiments.services import end_experiment
from gateway.models import Experiment, ExperimentAnswer
from gateway.tables.experiment import UNFINISHED, AnswerState, ExperimentState

# A worker moves its claim on every few seconds; after its death another one takes the experiment so much later.
CLAIM_SECONDS = 30.0
# An experiment that found no room in the project's limits for so long ends as failed.
_MAX_AGE = timedelta(hours=6)


def claim_experiment() -> Experiment | None:
    """Returns the unfinished experiment that has waited longest and that no worker has; None without one."""
    now = timezone.now()
    free = Q(claimed_until=None) | Q(claimed_until__lt=now)
    due = Experiment.objects.filter(free, state__in=UNFINISHED).order_by(
        F("claimed_until").asc(nulls_first=True), "created_at"
    )
    for experiment in due[:10]:
        if now - experiment.created_at > _MAX_AGE:
            end_experiment(experiment.pk, ExperimentState.FAILED, "The experiment did not end within six hours.")
            continue
        taken = Experiment.objects.filter(free, pk=experiment.pk, state__in=UNFINISHED).update(
            state=ExperimentState.RUNNING, claimed_until=_claim(), started_at=experiment.started_at or now
        )
        if taken:
            # Answers that a worker had begun before it died are begun again, in the same rows.
            _answers(experiment.pk).filter(state=AnswerState.RUNNING).update(state=AnswerState.PENDING)
            experiment.refresh_from_db()
            return experiment
    return None


def keep_claim(experiment_id: UUID) -> bool:
    """Extends the claim. Returns False if the experiment has ended or was deleted."""
    return bool(
        Experiment.objects.filter(pk=experiment_id, state=ExperimentState.RUNNING).update(claimed_until=_claim())
    )


def release_experiment(experiment_id: UUID, until: datetime | None) -> None:
    """Gives the experiment back, to be taken again at `until` or at once; one without open answers is completed."""
    if not _answers(experiment_id).filter(state__in=(AnswerState.PENDING, AnswerState.RUNNING)).exists():
        end_experiment(experiment_id, ExperimentState.COMPLETED)
        return
    Experiment.objects.filter(pk=experiment_id, state=ExperimentState.RUNNING).update(claimed_until=until)


def is_anything_due() -> bool:
    now = timezone.now()
    return Experiment.objects.filter(Q(claimed_until=None) | Q(claimed_until__lt=now), state__in=UNFINISHED).exists()


def claim_answer(experiment_id: UUID) -> ExperimentAnswer | None:
    """Returns the next answer to make, with its item; None when all have been taken."""
    waiting = _answers(experiment_id).filter(state=AnswerState.PENDING).order_by("item__position", "candidate")
    while (answer := waiting.select_related("item").first()) is not None:
        taken = ExperimentAnswer.objects.filter(pk=answer.pk, state=AnswerState.PENDING).update(
            state=AnswerState.RUNNING, tries=F("tries") + 1
        )
        if taken:
            answer.tries += 1
            return answer
    return None


def put_back(answer: ExperimentAnswer) -> None:
    """Lets an answer be made later."""
    ExperimentAnswer.objects.filter(pk=answer.pk, state=AnswerState.RUNNING).update(state=AnswerState.PENDING)


def store_answer(answer: ExperimentAnswer) -> None:
    """Stores what became of an answer, unless the experiment was cancelled or deleted meanwhile."""
    names = [field.name for field in ExperimentAnswer._meta.concrete_fields if field.name not in _FIXED]
    values = {name: getattr(answer, name) for name in names}
    ExperimentAnswer.objects.filter(pk=answer.pk, state=AnswerState.RUNNING).update(
        **{**values, "state": AnswerState.DONE}
    )


_FIXED = frozenset({"id", "item", "candidate", "state", "tries"})


def _answers(experiment_id: UUID) -> QuerySet[ExperimentAnswer]:
    return ExperimentAnswer.objects.filter(item__experiment_id=experiment_id)


def _claim() -> datetime:
    return timezone.now() + timedelta(seconds=CLAIM_SECONDS)
