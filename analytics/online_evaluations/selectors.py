from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, TypedDict
from uuid import UUID

from django.db.models import Count, F, Min, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from analytics.models import EvaluationBudget, EvaluationTask, EvaluatorVersion, OnlineEvaluation
from analytics.models.online_evaluations import EvaluationState, SkipReason, TaskState
from analytics.online_evaluations.errors import OnlineEvaluationNotFoundError
from analytics.online_evaluations.money import month_of
from analytics.reviews.due_labels import LABEL_PATIENCE
from core.ledger import NOTHING, SumOfDollars
from core.resources.rows import get_or_raise

_MINUTE = timedelta(minutes=1)
_HOUR = timedelta(hours=1)
_DAY = timedelta(days=1)


class SkippedTasks(TypedDict):
    budget: int
    no_text: int
    masked: int
    too_old: int
    disabled: int


class TaskCounts(TypedDict):
    """How many answers the sample took (`sampled`), and what became of them. `missing` have no score: failed or
    skipped."""

    sampled: int
    due: int
    done: int
    missing: int
    failed: int
    failed_by_reason: dict[str, int]
    skipped: int
    skipped_by_reason: SkippedTasks


class LabelCounts(TypedDict):
    """How many of the sampled answers a person is to label (`sampled`), and what became of these labels. `missing`
    were not given within 7 days, or their answer has no score."""

    sampled: int
    due: int
    given: int
    missing: int


@dataclass(frozen=True, slots=True)
class Progress:
    """`spent_usd` and `reserved_usd` are of this month, `last_day_usd` of tasks that ended in the last 24 hours."""

    tasks: TaskCounts
    last_hour: TaskCounts
    labels: LabelCounts
    oldest_due_at: datetime | None
    spent_usd: Decimal
    reserved_usd: Decimal
    is_spent_out: bool
    last_day_usd: Decimal


def list_online_evaluations(project_id: UUID) -> QuerySet[OnlineEvaluation]:
    """The latest first, each with the number of the version that scores now as `scoring_number`."""
    rows = OnlineEvaluation.objects.for_project(project_id).exclude(state=EvaluationState.DELETED)
    versions = EvaluatorVersion.objects.filter(evaluator=OuterRef("evaluator"))
    newest = versions.order_by("-number").values("number")[:1]
    rows = rows.annotate(scoring_number=Coalesce(F("version__number"), Subquery(newest)))
    return rows.select_related("evaluator", "version").order_by("-created_at", "-id")


def get_online_evaluation(project_id: UUID, evaluation_id: UUID) -> OnlineEvaluation:
    return get_or_raise(list_online_evaluations(project_id), OnlineEvaluationNotFoundError, pk=evaluation_id)


def version_of(evaluation: OnlineEvaluation) -> EvaluatorVersion:
    """Returns the version that scores now: the chosen one, or the newest of the evaluator."""
    if evaluation.version is not None:
        return evaluation.version
    # An evaluator is made with its first version.
    return evaluation.evaluator.versions.select_related("evaluator").order_by("-number")[0]


def scoring_number_of(evaluation: OnlineEvaluation) -> int:
    """Takes a row of `list_online_evaluations`; returns the number of the version that scores now."""
    number: int = evaluation.scoring_number  # type: ignore[attr-defined]  # Annotated there.
    return number


def progress_of(evaluation: OnlineEvaluation) -> Progress:
    return progress_of_several([evaluation])[evaluation.pk]


def progress_of_several(evaluations: Iterable[OnlineEvaluation]) -> dict[UUID, Progress]:
    moment = timezone.now()
    ids = [row.pk for row in evaluations]
    tasks = EvaluationTask.objects.filter(evaluation__in=ids).order_by()
    due = tasks.filter(state=TaskState.DUE)
    everything = _counted(tasks)
    in_hour = _counted(tasks.filter(ended_at__gte=moment - _HOUR))
    # What waits for users comes due a day later.
    due_in_hour = _counted(due.filter(due_at__gte=moment - _HOUR, due_at__lte=moment + _MINUTE))
    oldest = dict(due.values_list("evaluation_id").annotate(oldest=Min("due_at")))
    costs = dict(
        tasks.filter(ended_at__gte=moment - _DAY).values_list("evaluation_id").annotate(cost=SumOfDollars("cost_usd"))
    )
    months = EvaluationBudget.objects.filter(evaluation__in=ids, month=month_of(moment))
    by_month = {month.evaluation_id: month for month in months}
    unused = EvaluationBudget(spent_usd=NOTHING, reserved_usd=NOTHING)
    labels = _labels(tasks.filter(label_due=True), moment)
    return {
        one: Progress(
            tasks=_counts(everything.get(one, ())),
            last_hour=_counts([*in_hour.get(one, ()), *due_in_hour.get(one, ())]),
            labels=labels.get(one, _label_counts(0, 0, 0)),
            oldest_due_at=oldest.get(one),
            spent_usd=by_month.get(one, unused).spent_usd,
            reserved_usd=by_month.get(one, unused).reserved_usd,
            is_spent_out=by_month.get(one, unused).spent_out_at is not None,
            last_day_usd=costs.get(one) or NOTHING,
        )
        for one in ids
    }


def backlog(limit: int) -> list[tuple[UUID, UUID, int, datetime]]:
    """Returns project, evaluation, number of due tasks and time of the oldest, for the `limit` evaluations with the
    oldest.

    Tasks that wait for users' feedback do not count.
    """
    due = EvaluationTask.objects.filter(state=TaskState.DUE, due_at__lte=timezone.now()).order_by()
    rows = due.values("project_id", "evaluation_id")
    found = rows.annotate(due=Count("pk"), oldest=Min("due_at")).order_by("oldest")[:limit]
    return [(row["project_id"], row["evaluation_id"], row["due"], row["oldest"]) for row in found]


def _labels(tasks: QuerySet[EvaluationTask], now: datetime) -> dict[UUID, LabelCounts]:
    """A label counts as due from the sample on, even while its answer has no score yet."""
    may_come = Q(labelled_at=None, is_erased=False, due_at__gt=now - LABEL_PATIENCE)
    is_open = may_come & Q(state__in=(TaskState.DUE, TaskState.DONE))
    given = Q(labelled_at__isnull=False)
    rows = tasks.values("evaluation_id").annotate(
        sampled=Count("pk"), open=Count("pk", filter=is_open), given=Count("pk", filter=given)
    )
    return {row["evaluation_id"]: _label_counts(row["sampled"], row["open"], row["given"]) for row in rows}


def _counted(tasks: QuerySet[EvaluationTask]) -> dict[UUID, list[tuple[str, str, int]]]:
    found: dict[UUID, list[tuple[str, str, int]]] = {}
    rows = tasks.values_list("evaluation_id", "state", "reason").annotate(count=Count("*"))
    for evaluation_id, state, reason, count in rows:
        found.setdefault(evaluation_id, []).append((state, reason, count))
    return found


def _label_counts(sampled: int, due: int, given: int) -> LabelCounts:
    return {"sampled": sampled, "due": due, "given": given, "missing": sampled - due - given}


def _counts(rows: Iterable[tuple[str, str, int]]) -> TaskCounts:
    by_state: dict[str, Counter[str]] = {state: Counter() for state in TaskState.values}
    for state, reason, count in rows:
        by_state[state][reason] += count
    due, done, failed, skipped = (by_state[state].total() for state in TaskState)
    skips: Any = {reason.value: by_state[TaskState.SKIPPED][reason] for reason in SkipReason}
    return {
        "sampled": due + done + failed + skipped,
        "due": due,
        "done": done,
        "missing": failed + skipped,
        "failed": failed,
        "failed_by_reason": dict(sorted(by_state[TaskState.FAILED].items())),
        "skipped": skipped,
        "skipped_by_reason": skips,
    }
