"""The tasks of a rollout for its verdict: those of whole minutes, once all of a minute's tasks have ended.

The outcome of a task never depends on when somebody looks: a score counts if it came within `PATIENCE` after the task
was due, a label within `LABEL_PATIENCE`. Anything later is missing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Count, Min, Q, QuerySet

from analytics.models import EvaluationTask
from analytics.models.online_evaluations import TaskState
from analytics.online_evaluations.queue import PATIENCE
from analytics.reviews.due_labels import LABEL_PATIENCE, still_changing

TOO_LATE = "too_late"
"""The reason of a task that ended after the patience with it was over."""
NOT_ENDED = "not_ended"
"""The reason of a task that had not ended when the patience with it was over."""

_MINUTE = timedelta(minutes=1)
# Workers' clocks differ, and what they write is read a moment later.
_GRACE = timedelta(minutes=1)
_TASKS_AT_ONCE = 50_000


@dataclass(frozen=True, slots=True)
class EndedTask:
    """A task whose score and label are final. `minute` is the start of the minute after which it was due: that in which
    its request was recorded, or a day later for users' ratings. `position` is the hash that decided the sample. `score`
    and `label` are from 0 to 1, None if missing; `reason` says why there is no score. `label_share` is the share of
    such tasks that people label."""

    version_id: UUID
    request_id: UUID
    requested_at: datetime
    minute: datetime
    stage: int
    variant: str
    position: int
    score: float | None
    reason: str = ""
    label_due: bool = False
    label: float | None = None
    label_share: float | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    until: datetime
    tasks: Sequence[EndedTask]


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """An arm's tasks so far. `missing` counts those that ended without a score, by reason.

    `labels_awaited` counts those whose label is due and may still be given.
    """

    due: int = 0
    done: int = 0
    missing: dict[str, int] = field(default_factory=dict)
    labels_awaited: int = 0


def ended_tasks(
    rollout_id: UUID,
    version_ids: Collection[UUID],
    after: datetime,
    until: datetime,
    *,
    with_labels: bool,
    now: datetime,
) -> Ended:
    """Returns the tasks from `after` to the first minute with an open task, at most to `until`.

    With labels, a task is open while its label may still come.
    """
    tasks = _of_rollout(rollout_id, version_ids).filter(due_at__gt=after, due_at__lte=until)
    first_open: datetime | None = tasks.filter(_is_open(now, with_labels=with_labels)).aggregate(first=Min("due_at"))[
        "first"
    ]
    end = until if first_open is None else min(until, first_open - _MINUTE)
    if end <= after:
        return Ended(after, ())
    rows = list(tasks.filter(due_at__lte=end).order_by("due_at", "position", "pk")[: _TASKS_AT_ONCE + 1])
    if len(rows) > _TASKS_AT_ONCE:
        end = rows[-1].due_at - _MINUTE
        rows = [row for row in rows if row.due_at <= end]
    return Ended(end, [_ended(row) for row in _once_each(rows)])


def counts_by_arm(
    rollout_id: UUID, version_ids: Collection[UUID], now: datetime
) -> Mapping[tuple[UUID, str], TaskCounts]:
    rows = (
        _of_rollout(rollout_id, version_ids)
        .order_by()
        .values_list("version_id", "variant", "state", "reason")
        .annotate(count=Count("pk"), awaited=Count("pk", filter=_label_may_come(now)))
    )
    found: dict[tuple[UUID, str], TaskCounts] = {}
    for version_id, variant, state, reason, count, awaited in sorted(rows):
        known = found.get((version_id, variant), TaskCounts())
        is_missing = state in (TaskState.FAILED, TaskState.SKIPPED)
        found[version_id, variant] = TaskCounts(
            due=known.due + count,
            done=known.done + count * (state == TaskState.DONE),
            missing=known.missing | {reason: known.missing.get(reason, 0) + count} if is_missing else known.missing,
            labels_awaited=known.labels_awaited + awaited,
        )
    return found


def _of_rollout(rollout_id: UUID, version_ids: Collection[UUID]) -> QuerySet[EvaluationTask]:
    return EvaluationTask.objects.filter(
        rollout_id=rollout_id, version_id__in=list(version_ids), evaluation__matched=True
    )


def _is_open(now: datetime, *, with_labels: bool) -> Q:
    is_due = Q(state=TaskState.DUE, due_at__gt=now - PATIENCE - _GRACE)
    if not with_labels:
        return is_due
    return is_due | _label_may_come(now) | Q(still_changing(now - _GRACE), state=TaskState.DONE, label_due=True)


def _label_may_come(now: datetime) -> Q:
    may_come = Q(labelled_at=None, is_erased=False, due_at__gt=now - LABEL_PATIENCE - _GRACE)
    return may_come & Q(state=TaskState.DONE, label_due=True)


def _once_each(rows: Sequence[EvaluationTask]) -> list[EvaluationTask]:
    """Keeps one task per answer and version: two online evaluations may have the same answer due."""
    found: dict[tuple[UUID, UUID], EvaluationTask] = {}
    for row in rows:
        found.setdefault((row.version_id, row.request_id), row)
    return list(found.values())


def _ended(row: EvaluationTask) -> EndedTask:
    score, reason = _score(row)
    return EndedTask(
        version_id=row.version_id,
        request_id=row.request_id,
        requested_at=row.requested_at,
        minute=row.due_at - _MINUTE,
        stage=row.rollout_stage,
        variant=row.variant,
        position=row.position,
        score=score,
        reason=reason,
        label_due=row.label_due,
        label=_label(row),
        label_share=row.label_share,
    )


def _label(row: EvaluationTask) -> float | None:
    is_in_time = row.labelled_at is not None and row.labelled_at <= row.due_at + LABEL_PATIENCE
    return row.label if row.label_due and is_in_time else None


def _score(row: EvaluationTask) -> tuple[float | None, str]:
    if row.state == TaskState.DUE:
        return None, NOT_ENDED
    if row.state != TaskState.DONE or row.score is None:
        return None, row.reason
    if row.ended_at is None or row.ended_at > row.due_at + PATIENCE:
        return None, TOO_LATE
    # Whoever may write scores may have given this one another value before its task was judged.
    return (row.score, "") if 0 <= row.score <= 1 else (None, "unreadable")
