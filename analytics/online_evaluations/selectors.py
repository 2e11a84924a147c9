"""Reads online evaluations and counts their tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID

from django.db.models import Count, Min, QuerySet
from django.utils import timezone

from analytics.models import EvaluationBudget, EvaluationTask, EvaluatorVersion, OnlineEvaluation
from analytics.models.online_evaluations import EvaluationState, TaskState
from analytics.online_evaluations.errors import OnlineEvaluationNotFoundError
from analytics.online_evaluations.money import month_of

_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Counts:
    """How many tasks are in which state; `skipped_by` and `failed_by` count by reason."""

    due: int = 0
    done: int = 0
    failed: int = 0
    skipped: int = 0
    failed_by: Mapping[str, int] = field(default_factory=dict)
    skipped_by: Mapping[str, int] = field(default_factory=dict)

    @property
    def sampled(self) -> int:
        """All tasks: what the sample took, of which the scores are a part."""
        return self.due + self.done + self.failed + self.skipped


@dataclass(frozen=True, slots=True)
class Progress:
    """The tasks of an evaluation. `last_hour` counts those that ended in it, and as `due` those that came due in it and
    still are. The money is that of this month."""

    counts: Counts
    last_hour: Counts
    oldest_due_at: datetime | None
    spent_usd: Decimal
    reserved_usd: Decimal
    is_spent_out: bool


def list_online_evaluations(project_id: UUID) -> QuerySet[OnlineEvaluation]:
    """Returns the evaluations of a project, the latest first."""
    rows = OnlineEvaluation.objects.for_project(project_id).exclude(state=EvaluationState.DELETED)
    return rows.select_related("evaluator", "version").order_by("-created_at", "-id")


def get_online_evaluation(project_id: UUID, evaluation_id: UUID) -> OnlineEvaluation:
    """Raises OnlineEvaluationNotFoundError."""
    row = list_online_evaluations(project_id).filter(pk=evaluation_id).first()
    if row is None:
        raise OnlineEvaluationNotFoundError
    return row


def version_of(evaluation: OnlineEvaluation) -> EvaluatorVersion:
    """Returns the version that scores now: the chosen one, or the newest of the evaluator."""
    if evaluation.version is not None:
        return evaluation.version
    # An evaluator is made with its first version.
    return evaluation.evaluator.versions.select_related("evaluator").order_by("-number")[0]


def progress_of(evaluation: OnlineEvaluation, now: datetime | None = None) -> Progress:
    moment = now or timezone.now()
    tasks = EvaluationTask.objects.filter(evaluation=evaluation)
    due = tasks.filter(state=TaskState.DUE)
    in_hour = _counted(tasks.filter(ended_at__gte=moment - _HOUR))
    month = EvaluationBudget.objects.filter(evaluation=evaluation, month=month_of(moment)).first()
    return Progress(
        counts=_counts(_counted(tasks)),
        last_hour=_counts([*in_hour, *_counted(due.filter(due_at__gte=moment - _HOUR))]),
        oldest_due_at=due.aggregate(oldest=Min("due_at"))["oldest"],
        spent_usd=month.spent_usd if month is not None else Decimal(0),
        reserved_usd=month.reserved_usd if month is not None else Decimal(0),
        is_spent_out=month is not None and month.spent_out_at is not None,
    )


def backlog(limit: int) -> list[tuple[UUID, UUID, int, datetime]]:
    """Returns project, evaluation, number of due tasks and when the oldest came due, of the `limit` evaluations with
    the oldest ones."""
    rows = EvaluationTask.objects.filter(state=TaskState.DUE).order_by().values("project_id", "evaluation_id")
    found = rows.annotate(due=Count("pk"), oldest=Min("due_at")).order_by("oldest")[:limit]
    return [(row["project_id"], row["evaluation_id"], row["due"], row["oldest"]) for row in found]


_Counted = Sequence[tuple[str, str, int]]


def _counted(tasks: QuerySet[EvaluationTask]) -> _Counted:
    found = tasks.order_by().values("state", "reason").annotate(count=Count("pk"))
    return [(row["state"], row["reason"], row["count"]) for row in found]


def _counts(rows: _Counted) -> Counts:
    by_state: dict[str, dict[str, int]] = {state: {} for state in TaskState.values}
    for state, reason, count in rows:
        by_state[state][reason] = by_state[state].get(reason, 0) + count
    return Counts(
        due=sum(by_state[TaskState.DUE].values()),
        done=sum(by_state[TaskState.DONE].values()),
        failed=sum(by_state[TaskState.FAILED].values()),
        skipped=sum(by_state[TaskState.SKIPPED].values()),
        failed_by=by_state[TaskState.FAILED],
        skipped_by=by_state[TaskState.SKIPPED],
    )
