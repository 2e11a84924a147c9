"""Which worker has which trial, and which answer is next: conditional updates, so that no two take the same."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import F, Q, QuerySet
from django.utils import timezone

from gateway.models import Trial, TrialAnswer
from gateway.tables.trial import UNFINISHED, AnswerState, TrialState
from gateway.trials.services import end_trial

# A worker moves its claim on every few seconds; after its death another one takes the trial so much later.
CLAIM_SECONDS = 30.0
# A trial that found no room in the project's limits for so long ends as failed.
_MAX_AGE = timedelta(hours=6)


def claim_trial() -> Trial | None:
    """Returns the unfinished trial that has waited longest and that no worker has; None without one."""
    now = timezone.now()
    free = Q(claimed_until=None) | Q(claimed_until__lt=now)
    due = Trial.objects.filter(free, state__in=UNFINISHED).order_by(
        F("claimed_until").asc(nulls_first=True), "created_at"
    )
    for trial in due[:10]:
        if now - trial.created_at > _MAX_AGE:
            end_trial(trial.pk, TrialState.FAILED, "The trial did not end within six hours.")
            continue
        taken = Trial.objects.filter(free, pk=trial.pk, state__in=UNFINISHED).update(
            state=TrialState.RUNNING, claimed_until=_claim(), started_at=trial.started_at or now
        )
        if taken:
            # Answers that a worker had begun before it died are begun again, in the same rows.
            _answers(trial.pk).filter(state=AnswerState.RUNNING).update(state=AnswerState.PENDING)
            trial.refresh_from_db()
            return trial
    return None


def keep_claim(trial_id: UUID) -> bool:
    """Extends the claim. Returns False if the trial has ended or was deleted."""
    return bool(Trial.objects.filter(pk=trial_id, state=TrialState.RUNNING).update(claimed_until=_claim()))


def release_trial(trial_id: UUID, until: datetime | None) -> None:
    """Gives the trial back, to be taken again at `until` or at once; a trial without open answers is completed."""
    if not _answers(trial_id).filter(state__in=(AnswerState.PENDING, AnswerState.RUNNING)).exists():
        end_trial(trial_id, TrialState.COMPLETED)
        return
    Trial.objects.filter(pk=trial_id, state=TrialState.RUNNING).update(claimed_until=until)


def is_anything_due() -> bool:
    now = timezone.now()
    return Trial.objects.filter(Q(claimed_until=None) | Q(claimed_until__lt=now), state__in=UNFINISHED).exists()


def claim_answer(trial_id: UUID) -> TrialAnswer | None:
    """Returns the next answer to make, with its input; None when all have been taken."""
    waiting = _answers(trial_id).filter(state=AnswerState.PENDING).order_by("input__position", "candidate")
    while (answer := waiting.select_related("input").first()) is not None:
        taken = TrialAnswer.objects.filter(pk=answer.pk, state=AnswerState.PENDING).update(
            state=AnswerState.RUNNING, tries=F("tries") + 1
        )
        if taken:
            answer.tries += 1
            return answer
    return None


def put_back(answer: TrialAnswer) -> None:
    """Lets an answer be made later."""
    TrialAnswer.objects.filter(pk=answer.pk, state=AnswerState.RUNNING).update(state=AnswerState.PENDING)


def store_answer(answer: TrialAnswer) -> None:
    """Stores what became of an answer, unless the trial was cancelled or deleted meanwhile."""
    names = [field.name for field in TrialAnswer._meta.concrete_fields if field.name not in _FIXED]
    values = {name: getattr(answer, name) for name in names}
    TrialAnswer.objects.filter(pk=answer.pk, state=AnswerState.RUNNING).update(**{**values, "state": AnswerState.DONE})


_FIXED = frozenset({"id", "input", "candidate", "state", "tries"})


def _answers(trial_id: UUID) -> QuerySet[TrialAnswer]:
    return TrialAnswer.objects.filter(input__trial_id=trial_id)


def _claim() -> datetime:
    return timezone.now() + timedelta(seconds=CLAIM_SECONDS)
