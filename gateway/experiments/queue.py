"""Which worker has which experiment, and which answer or score is next. Conditional updates keep two workers from
taking the same."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Exists, F, OuterRef, Prefetch, Q, QuerySet
from django.utils import timezone

from core.ledger import NOTHING
from gateway.experiments import budget
from gateway.experiments.services import end_experiment
from gateway.models import Experiment, ExperimentAnswer, ExperimentItem, ExperimentScore
from gateway.tables.experiment import UNFINISHED, AnswerFailure, AnswerState, ExperimentFailure, ExperimentState

# A worker moves its claim on every few seconds; after its death another one takes the experiment so much later.
CLAIM_SECONDS = 30.0
# An experiment that found no room in the project's limits for so long ends as failed.
_MAX_AGE = timedelta(hours=6)
# The share of a candidate's answers that may fail for reasons that will pass.
MOST_FAILED = 0.2
_UNANSWERED = (AnswerState.AWAITED, AnswerState.PENDING, AnswerState.RUNNING)
_OPEN = (*_UNANSWERED, AnswerState.ANSWERED, AnswerState.SCORING)


def claim_experiment() -> Experiment | None:
    now = timezone.now()
    due = _free(now).filter(_has_work()).order_by(F("claimed_until").asc(nulls_first=True), "created_at")
    for experiment in due[:10]:
        if not experiment.is_shadow and now - experiment.created_at > _MAX_AGE:
            problem = "The experiment did not end within six hours."
            end_experiment(experiment.pk, ExperimentState.FAILED, problem, code=ExperimentFailure.TIMEOUT)
            continue
        taken = (
            _free(now)
            .filter(pk=experiment.pk)
            .update(state=ExperimentState.RUNNING, claimed_until=_claim(), started_at=experiment.started_at or now)
        )
        if taken:
            # Answers that a worker had begun before it died are begun again, in the same rows.
            _answers(experiment.pk).filter(state=AnswerState.RUNNING).update(state=AnswerState.PENDING)
            _answers(experiment.pk).filter(state=AnswerState.SCORING).update(state=AnswerState.ANSWERED)
            experiment.refresh_from_db()
            return experiment
    return None


def keep_claim(experiment_id: UUID) -> bool:
    """Extends the claim. Returns False if the experiment has ended or was deleted."""
    return bool(
        Experiment.objects.filter(pk=experiment_id, state=ExperimentState.RUNNING).update(claimed_until=_claim())
    )


def release_experiment(experiment_id: UUID, until: datetime | None) -> None:
    """Makes the experiment due at `until`, or at once. Completes one without open answers, a shadow only once it has
    all its items."""
    if not _answers(experiment_id).filter(state__in=_OPEN).exists() and _has_all_items(experiment_id):
        end_experiment(experiment_id, ExperimentState.COMPLETED)
        return
    Experiment.objects.filter(pk=experiment_id, state=ExperimentState.RUNNING).update(claimed_until=until)


def wake(experiment_id: UUID) -> None:
    """Makes an experiment due that waits, but not one that a worker has: its claim ends much later."""
    soon = timezone.now() + timedelta(seconds=CLAIM_SECONDS / 3)
    Experiment.objects.filter(pk=experiment_id, claimed_until__lt=soon).update(claimed_until=None)


def is_anything_due() -> bool:
    free = _free(timezone.now())
    # Django takes a millisecond to write the second question, and beat asks every few seconds.
    return free.exists() and free.filter(_has_work()).exists()


def _free(now: datetime) -> QuerySet[Experiment]:
    return Experiment.objects.filter(Q(claimed_until=None) | Q(claimed_until__lt=now), state__in=UNFINISHED)


def _has_work() -> Q:
    open_answers = ExperimentAnswer.objects.filter(item__experiment=OuterRef("pk"), state__in=_OPEN)
    return Q(rollout_id=None) | Q(Exists(open_answers))


def _has_all_items(experiment_id: UUID) -> bool:
    shadow = Experiment.objects.filter(pk=experiment_id, rollout_id__isnull=False).first()
    if shadow is None:
        return True
    return ExperimentItem.objects.filter(experiment_id=experiment_id).count() >= shadow.item_limit


def claim_answer(experiment_id: UUID) -> ExperimentAnswer | None:
    """The next answer to make, with its item; None if all are taken.

    An answer that is being made elsewhere is left for later, so that it is not paid twice.
    """
    elsewhere = ExperimentAnswer.objects.filter(key=OuterRef("key"), state=AnswerState.RUNNING).exclude(key="")
    waiting = (
        _answers(experiment_id)
        .filter(~Exists(elsewhere), state=AnswerState.PENDING)
        .order_by("item__position", "candidate", "repeat")
        .select_related("item")
    )
    while (answer := waiting.first()) is not None:
        if _is_taken(answer):
            answer.tries += 1
            return answer
    return None


def _is_taken(answer: ExperimentAnswer) -> bool:
    try:
        with transaction.atomic():
            taken = ExperimentAnswer.objects.filter(pk=answer.pk, state=AnswerState.PENDING).update(
                state=AnswerState.RUNNING, tries=F("tries") + 1
            )
    except IntegrityError:  # Another experiment began with the same answer since the look.
        return False
    return bool(taken)


def is_anything_left(experiment_id: UUID) -> bool:
    """Whether answers wait: for an application, or because `claim_answer` left them for later."""
    return _answers(experiment_id).filter(state__in=(AnswerState.AWAITED, AnswerState.PENDING)).exists()


def put_back(answer: ExperimentAnswer) -> None:
    ExperimentAnswer.objects.filter(pk=answer.pk, state=AnswerState.RUNNING).update(state=AnswerState.PENDING)


def store_answer(answer: ExperimentAnswer, *, is_scored: bool, reserved: Decimal = NOTHING, cost: Decimal) -> None:
    """Stores an answer unless the experiment was cancelled or deleted, and books its cost in any case. `is_scored`:
    evaluators score it next."""
    names = [field.name for field in ExperimentAnswer._meta.concrete_fields if field.name not in _FIXED]
    values = {name: getattr(answer, name) for name in names}
    values["state"] = AnswerState.ANSWERED if is_scored else AnswerState.DONE
    with transaction.atomic():
        ExperimentAnswer.objects.filter(pk=answer.pk, state=AnswerState.RUNNING).update(**values)
        budget.settle(answer.item.experiment_id, reserved=reserved, cost=cost)


def claim_scoring(experiment_id: UUID) -> list[ExperimentAnswer]:
    """The answers of one item and repeat to score next, once all of them are there, including the baseline's even if it
    is done. Empty if there is nothing to score yet."""
    missing = ExperimentAnswer.objects.filter(item=OuterRef("item"), repeat=OuterRef("repeat"), state__in=_UNANSWERED)
    waiting = (
        _answers(experiment_id)
        .filter(~Exists(missing), state=AnswerState.ANSWERED)
        .order_by("item__position", "repeat")
        .values_list("item_id", "repeat")
    )
    while (found := waiting.first()) is not None:
        group = ExperimentAnswer.objects.filter(item_id=found[0], repeat=found[1])
        if group.filter(state=AnswerState.ANSWERED).update(state=AnswerState.SCORING):
            scores = Prefetch("scores", ExperimentScore.objects.order_by("evaluator"))
            return list(group.order_by("candidate").select_related("item").prefetch_related(scores))
    return []


def put_scoring_back(answers: Sequence[ExperimentAnswer]) -> None:
    ids = [answer.pk for answer in answers]
    ExperimentAnswer.objects.filter(pk__in=ids, state=AnswerState.SCORING).update(state=AnswerState.ANSWERED)


def store_score(score: ExperimentScore, experiment_id: UUID, *, reserved: Decimal, cost: Decimal) -> None:
    """Stores a score unless it exists or the answer was deleted, and books its cost in any case. Items without texts
    get no score."""
    with transaction.atomic():
        if ExperimentAnswer.objects.select_for_update().filter(pk=score.answer_id).first() is not None:
            # Asked after the lock, which erasure takes too.
            if ExperimentItem.objects.filter(answers=score.answer_id).exclude(gone="").exists():
                score.detail = score.key = ""
            ExperimentScore.objects.bulk_create([score], ignore_conflicts=True)
        budget.settle(experiment_id, reserved=reserved, cost=cost)


def finish_scoring(answers: Sequence[ExperimentAnswer]) -> bool:
    """Marks the answers as scored. Returns whether all answers to their item are done."""
    ids = [answer.pk for answer in answers]
    ExperimentAnswer.objects.filter(pk__in=ids, state=AnswerState.SCORING).update(state=AnswerState.DONE)
    of_item = ExperimentAnswer.objects.filter(item_id=answers[0].item_id)
    return not of_item.exclude(state=AnswerState.DONE).exists()


def fails_too_often(experiment_id: UUID, candidate: int) -> bool:
    """Whether more than a fifth of a candidate's answers failed for transient reasons."""
    own = _answers(experiment_id).filter(candidate=candidate)
    return own.filter(failure=AnswerFailure.PASSING).count() > own.count() * MOST_FAILED


_FIXED = frozenset({"id", "item", "candidate", "repeat", "key", "state", "tries"})


def _answers(experiment_id: UUID) -> QuerySet[ExperimentAnswer]:
    return ExperimentAnswer.objects.filter(item__experiment_id=experiment_id)


def _claim() -> datetime:
    return timezone.now() + timedelta(seconds=CLAIM_SECONDS)
