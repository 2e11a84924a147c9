from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from uuid import UUID, uuid4

from django.db import transaction
from django.utils import timezone

from analytics.models import EvaluationTask, OnlineEvaluation
from analytics.models.online_evaluations import EvaluationState, SkipReason, TaskState
from core.chunks import chunks


def forget_tasks_of(project_id: UUID, request_ids: Iterable[UUID | str]) -> int:
    """Makes the tasks of deleted requests anonymous and returns how many.

    They stay, so that deletions do not shrink what was due. Due tasks are skipped, even while they are judged, so that
    no score is stored.
    """
    ids = [str(request_id) for request_id in request_ids]
    forgotten = 0
    for some in chunks(ids):
        tasks = EvaluationTask.objects.filter(project_id=project_id, request_id__in=some)
        with transaction.atomic():
            # Locked in the order in which workers do, so that neither waits for the other.
            found = list(tasks.select_for_update().order_by("pk"))
            _make_anonymous(found, timezone.now())
            changed = ["request_id", "is_erased", "state", "reason", "ended_at"]
            EvaluationTask.objects.bulk_update(found, changed)
        forgotten += len(found)
    return forgotten


def delete_tasks_before(project_id: UUID, moment: datetime) -> int:
    old = EvaluationTask.objects.filter(project_id=project_id, requested_at__lt=moment)
    deleted = old.filter(claim=None).delete()[0]
    gone = OnlineEvaluation.objects.for_project(project_id).filter(state=EvaluationState.DELETED, tasks=None)
    gone.filter(created_at__lt=moment).delete()
    return deleted


def _make_anonymous(tasks: Iterable[EvaluationTask], now: datetime) -> None:
    # Two evaluations may have the same answer due, which counts once.
    ids: defaultdict[UUID, UUID] = defaultdict(uuid4)
    for task in tasks:
        task.request_id, task.is_erased = ids[task.request_id], True
        if task.state == TaskState.DUE:
            # The worker that has it settles its money when it finds that the task has ended.
            task.state, task.reason, task.ended_at = TaskState.SKIPPED, SkipReason.NO_TEXT, now
