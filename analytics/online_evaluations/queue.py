"""The one queue of due answers, by minute and then by hash, so that a judge's slow hour affects both arms alike.

A worker claims tasks and keeps the claim alive. Ending a task requires its claim: after a worker's death another one
takes its tasks, and the reservation of the request in flight counts as spent.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Round
from django.utils import timezone

from analytics.evaluators.own_scores import new_score
from analytics.evaluators.selectors import KnownVersion, known_version
from analytics.models import EvaluationTask, OnlineEvaluation, Score
from analytics.models.evaluators import EvaluatorState
from analytics.models.online_evaluations import (
    JUDGE_MODEL_CHARACTERS,
    REASON_CHARACTERS,
    EvaluationState,
    SkipReason,
    TaskState,
)
from analytics.online_evaluations import money
from analytics.online_evaluations.money import month_of
from analytics.scores.services import NewScore, record_scores
from core.ledger import NOTHING

ACTOR = "online_evaluation"
PATIENCE = timedelta(minutes=15)
"""A task that nobody began to judge in this time after it came due is missing."""
CLAIM = timedelta(seconds=30)
MAX_TRIES = 3
INTERRUPTED = "interrupted"
"""The reason of tasks whose workers died again and again."""

_PLACES = 10
_AHEAD = timedelta(minutes=2)
_TASKS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Batch:
    claim: UUID
    project_id: UUID
    tasks: Sequence[EvaluationTask]


@dataclass(frozen=True, slots=True)
class End:
    """The outcome of a task: done with a score, or failed or skipped with a reason.

    `text` is the reason for a score by the judge or the rule. `is_known`: the score is stored already.
    """

    task: EvaluationTask
    state: TaskState
    reason: str = ""
    score: float | None = None
    text: str = ""
    judge_model: str = ""
    cost: Decimal = NOTHING
    is_known: bool = False


def tidy(now: datetime) -> None:
    _free_abandoned(now)
    waiting = EvaluationTask.objects.filter(state=TaskState.DUE, claim=None)
    _skip(waiting.filter(due_at__lt=now - PATIENCE), SkipReason.TOO_OLD, now)
    # One after the other: a day of waiting for users is a long queue, and an index finds what one evaluation has due.
    with_waiting = OnlineEvaluation.objects.filter(Exists(waiting.filter(evaluation=OuterRef("pk"))))
    disabled = with_waiting.filter(~Q(state=EvaluationState.ACTIVE) | ~Q(evaluator__state=EvaluatorState.ACTIVE))
    for evaluation_id in disabled.values_list("pk", flat=True):
        _skip(waiting.filter(evaluation=evaluation_id), SkipReason.DISABLED, now)
    spent_out = with_waiting.filter(budgets__month=month_of(now), budgets__spent_out_at__isnull=False)
    for evaluation_id in spent_out.values_list("pk", flat=True):
        _skip(waiting.filter(evaluation=evaluation_id), SkipReason.BUDGET, now)


def has_work() -> bool:
    """Returns whether any task is due, now or later, or claimed."""
    tasks = EvaluationTask.objects
    return tasks.filter(state=TaskState.DUE).exists() or tasks.filter(claim__isnull=False).exists()


def claim_batch(now: datetime, size: int) -> Batch | None:
    """Claims the next tasks of the project with the oldest due task; None if nothing is due."""
    waiting = _open(now).order_by("due_at", "position", "pk")
    while (first := waiting.only("project_id").first()) is not None:
        claim = uuid.uuid4()
        values = {"claim": claim, "claimed_until": now + CLAIM, "tries": F("tries") + 1}
        if _update(waiting.filter(project_id=first.project_id), size, **values):
            rows = EvaluationTask.objects.filter(claim=claim).order_by("due_at", "position", "pk")
            return Batch(claim, first.project_id, list(rows.select_related("evaluation", "version__evaluator")))
    return None


def is_anything_due(now: datetime) -> bool:
    return _open(now).exists()


def keep_claim(claim: UUID) -> bool:
    """Returns False if the claim holds no task any longer."""
    own = EvaluationTask.objects.filter(claim=claim)
    with transaction.atomic():
        # Locked in the order of the keys, as by all who change several.
        list(own.select_for_update().order_by("pk").values_list("pk"))
        return bool(own.update(claimed_until=timezone.now() + CLAIM))


def finish(ends: Iterable[End], now: datetime) -> None:
    """Stores outcomes, scores and costs atomically.

    A task whose request was deleted or whose claim has expired gets no score.
    """
    given = list(ends)
    with transaction.atomic():
        _lock(end.task.pk for end in given)
        by_project: dict[UUID, list[NewScore]] = {}
        costs: list[tuple[EvaluationTask, Decimal]] = []
        for end in given:
            is_own, is_ended = _ended(end, now)
            if is_own:
                costs.append((end.task, end.cost))
            if is_ended and end.score is not None and not end.is_known:
                by_project.setdefault(end.task.project_id, []).append(_score(end, end.score))
        money.settle(costs)
        for project_id, scores in by_project.items():
            record_scores(project_id=project_id, scores=scores, actor=ACTOR)


def put_back(task: EvaluationTask, *, until: datetime, cost: Decimal = NOTHING, counts: bool = False) -> None:
    """Returns a claimed task to the queue until `until`. With `counts`, the try counts as one."""
    with transaction.atomic():
        tries = F("tries") if counts else F("tries") - 1
        own = EvaluationTask.objects.filter(pk=task.pk, claim=task.claim)
        if own.update(**_free(cost), tries=tries, not_before=until):
            money.settle([(task, cost)])


def postpone(project_id: UUID, until: datetime) -> None:
    _postpone(EvaluationTask.objects.filter(project_id=project_id), until)


def postpone_evaluation(evaluation_id: UUID, until: datetime) -> None:
    _postpone(EvaluationTask.objects.filter(evaluation=evaluation_id), until)


def known_scores(tasks: Sequence[EvaluationTask]) -> dict[int, Score]:
    """Returns existing scores by task: another evaluation may have judged the same answer with the same version."""
    names = {score_id_of(task): task.pk for task in tasks}
    if not names:
        return {}
    rows = Score.objects.for_project(tasks[0].project_id).filter(score_id__in=list(names))
    by_name = {row.score_id: row for row in rows}
    return {task.pk: by_name[score_id_of(task)] for task in tasks if score_id_of(task) in by_name}


def score_id_of(task: EvaluationTask) -> str:
    return f"online:{task.version_id}:{task.request_id}"


def version_of(task: EvaluationTask) -> KnownVersion:
    return known_version(task.version)


def _open(now: datetime) -> QuerySet[EvaluationTask]:
    waiting = EvaluationTask.objects.filter(state=TaskState.DUE, claim=None)
    # The bound keeps the search from reading what waits for users, a day ahead.
    return waiting.filter(Q(not_before=None) | Q(not_before__lte=now), due_at__lte=now + _AHEAD)


def _postpone(tasks: QuerySet[EvaluationTask], until: datetime) -> None:
    waiting = tasks.filter(state=TaskState.DUE, claim=None, due_at__lte=until + _AHEAD)
    _update_all(waiting.filter(Q(not_before=None) | Q(not_before__lt=until)), not_before=until)


def _skip(tasks: QuerySet[EvaluationTask], reason: SkipReason, now: datetime) -> None:
    _update_all(tasks, state=TaskState.SKIPPED, reason=reason, ended_at=now)


def _update_all(tasks: QuerySet[EvaluationTask], **values: object) -> None:
    # By key, PostgreSQL would read all tasks that there ever were.
    in_order = tasks.order_by("due_at", "position", "pk")
    while _update(in_order, _TASKS_AT_ONCE, **values) == _TASKS_AT_ONCE:
        pass


def _update(tasks: QuerySet[EvaluationTask], size: int, **values: object) -> int:
    """Updates the first tasks of an ordered query and returns how many.

    Skips locked rows: two workers that wait for each other's rows would deadlock.
    """
    with transaction.atomic():
        ids = list(tasks.select_for_update(skip_locked=True).values_list("pk", flat=True)[:size])
        # SQLite has no locks of rows: there the query holds for each row once more.
        again = tasks.order_by().filter(pk__in=ids)
        return again.update(**values) if ids else 0


def _lock(ids: Iterable[int]) -> None:
    list(EvaluationTask.objects.select_for_update().filter(pk__in=list(ids)).order_by("pk").values_list("pk"))


def _free_abandoned(now: datetime) -> None:
    """Frees the tasks of workers without a heartbeat. A provider may have billed the request in flight, so its
    reservation counts as spent."""
    abandoned = EvaluationTask.objects.filter(claim__isnull=False, claimed_until__lt=now).order_by("pk")
    for task in abandoned[:_TASKS_AT_ONCE]:
        with transaction.atomic():
            own = EvaluationTask.objects.filter(pk=task.pk, claim=task.claim, claimed_until__lt=now)
            # What is reserved is read under the lock of the row.
            locked = own.select_for_update().first()
            if locked is None:
                continue
            money.settle([(locked, locked.reserved_usd)])
            own.update(**_free(locked.reserved_usd))
            if locked.state == TaskState.DUE and locked.tries >= MAX_TRIES:
                ended = {"state": TaskState.FAILED, "reason": INTERRUPTED, "ended_at": now}
                EvaluationTask.objects.filter(pk=task.pk).update(**ended)


def _ended(end: End, now: datetime) -> tuple[bool, bool]:
    """Returns whether the worker still held the task, and whether it was still due."""
    task = end.task
    own = EvaluationTask.objects.filter(pk=task.pk, claim=task.claim)
    freed = _free(end.cost)
    ended = own.filter(state=TaskState.DUE).update(
        **freed,
        state=end.state,
        reason=end.reason[:REASON_CHARACTERS],
        score=end.score,
        judge_model=end.judge_model[:JUDGE_MODEL_CHARACTERS],
        ended_at=now,
    )
    return bool(ended or own.update(**freed)), bool(ended)


def _free(cost: Decimal) -> dict[str, object]:
    return {
        "claim": None,
        "claimed_until": None,
        "reserved_usd": NOTHING,
        "reserved_in": None,
        "cost_usd": Round(F("cost_usd") + cost, _PLACES),
    }


def _score(end: End, value: float) -> NewScore:
    task = end.task
    return new_score(
        version_of(task), task.request_id, value, kind="online", reason=end.text, judge_model=end.judge_model
    )
