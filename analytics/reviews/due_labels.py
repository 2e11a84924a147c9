"""Queues of the labels that online evaluations have due: filled while open, balanced by arm, and blind.

The sample's hash decided which labels are due, before any score; a queue adds no selection of its own. It takes scored
answers, one item of each arm in turn, the oldest minute first and within it by hash: a rollout's verdict takes minutes
in order, each once all of its labels are there. The first person's label is the task's. A second person scores a tenth
of the same answers, so that people can be compared with each other.

Locks come in this order: the evaluator, the queue, its items, the tasks.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from itertools import islice, zip_longest
from uuid import UUID

from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from analytics.models import EvaluationTask, Evaluator, OnlineEvaluation
from analytics.models.online_evaluations import EvaluationState, TaskState
from analytics.models.reviews import FIRST_OPINION, SECOND_OPINION, ItemState, QueueState, ReviewItem, ReviewQueue
from core.errors import ValidationError

logger = logging.getLogger("analytics.reviews")

LABEL_PATIENCE = timedelta(days=7)
"""A label that nobody gave in this time after its answer came due is missing."""
SECOND_OPINIONS = 0.1
"""The share of the labels that a second person gives, too."""

_ROWS_AT_ONCE = 500
_BITS = 64


def require_labels(project_id: UUID, evaluator_id: UUID) -> None:
    evaluations = OnlineEvaluation.objects.for_project(project_id).filter(evaluator_id=evaluator_id)
    is_sampled = evaluations.filter(state=EvaluationState.ACTIVE, label_share__isnull=False).exists()
    waiting = _waiting_labels(project_id, timezone.now()).filter(version__evaluator_id=evaluator_id)
    if not is_sampled and not waiting.exists():
        problem = (
            "None of its labels is due: PATCH online-evaluations/{evaluation_id} with a label_share, in an active"
            " online evaluation of this evaluator."
        )
        raise ValidationError.of_field("evaluator_id", problem)


def free_labels(project_id: UUID, now: datetime) -> QuerySet[EvaluationTask]:
    items = ReviewItem.objects.filter(
        request_id=OuterRef("request_id"), queue__evaluator_id=OuterRef("version__evaluator_id")
    )
    taken = items.filter(Q(queue__state=QueueState.OPEN) | Q(state=ItemState.DONE), queue__due_labels=True)
    return _waiting_labels(project_id, now).exclude(Exists(taken))


def count_free_labels(project_id: UUID, now: datetime) -> dict[UUID, int]:
    return dict(free_labels(project_id, now).order_by().values_list("version__evaluator_id").annotate(Count("pk")))


def open_queues() -> QuerySet[ReviewQueue]:
    return ReviewQueue.objects.filter(due_labels=True, state=QueueState.OPEN, evaluator__isnull=False)


def fill_queues(now: datetime) -> int:
    return sum(fill_queue(row, now) for row in open_queues().order_by("created_at", "pk"))


def fill_queue(queue: ReviewQueue, now: datetime) -> int:
    """Adds due labels up to the queue's size, and removes those that nobody gave in time.

    Returns the number of items added.
    """
    if queue.evaluator_id is None:
        return 0
    with transaction.atomic():
        # Two queues of one evaluator would each find the same answers free.
        Evaluator.objects.select_for_update().get(pk=queue.evaluator_id)
        row = ReviewQueue.objects.select_for_update().get(pk=queue.pk)
        if row.state != QueueState.OPEN:
            return 0
        _expired(row, now).delete()
        room = row.sample_size - row.items.filter(opinion=FIRST_OPINION).count()
        tasks = list(_in_turn(row, room, now)) if room > 0 else []
        last = row.last_position
        items = (_item(row, last + place, task) for place, task in enumerate(tasks, 1))
        ReviewItem.objects.bulk_create(items, batch_size=_ROWS_AT_ONCE)
    if tasks:
        logger.info("review_queue.filled queue_id=%s items=%d", queue.pk, len(tasks))
    return len(tasks)


def give_label(queue: ReviewQueue, item: ReviewItem, value: float, now: datetime) -> None:
    """Stores the label in the answer's tasks, unless they are too old. Only labels that may still change are
    replaced.
    """
    if queue.evaluator_id is None:
        return
    tasks = EvaluationTask.objects.filter(
        project_id=queue.project_id,
        request_id=item.request_id,
        version__evaluator_id=queue.evaluator_id,
        label_due=True,
    )
    in_time = Q(labelled_at=None, due_at__gt=now - LABEL_PATIENCE) | still_changing(now)
    locked = tasks.filter(in_time).select_for_update(of=("self",)).order_by("pk")
    ids = list(locked.values_list("pk", flat=True))
    EvaluationTask.objects.filter(pk__in=ids).update(label=queue.scaled(value), labelled_at=now)


def still_changing(now: datetime) -> Q:
    """The condition of tasks labelled in this minute, whose author may change the label.

    A verdict reads only labels of past minutes, so it always reads the same ones.
    """
    return Q(labelled_at__gte=now.replace(second=0, microsecond=0))


def ask_second_person(queue: ReviewQueue, item: ReviewItem) -> None:
    """Adds a second opinion if the hash selects the answer and there is none yet. The caller has locked the queue."""
    if queue.evaluator_id is None or item.opinion != FIRST_OPINION:
        return
    if not needs_second_person(queue.evaluator_id, item.request_id):
        return
    if not queue.items.filter(request_id=item.request_id, opinion=SECOND_OPINION).exists():
        ReviewItem.objects.create(
            queue=queue,
            position=queue.last_position + 1,
            request_id=item.request_id,
            opinion=SECOND_OPINION,
            arm=item.arm,
            ts=item.ts,
        )


def needs_second_person(evaluator_id: UUID, request_id: UUID) -> bool:
    digest = sha256(f"{evaluator_id}:second:{request_id}".encode()).digest()
    return int.from_bytes(digest[:8]) < SECOND_OPINIONS * (1 << _BITS)


def labels_by_arm(queue: ReviewQueue, now: datetime) -> dict[str, int]:
    given = Q(state=ItemState.DONE) | Q(state=ItemState.OPEN, claimed_until__gte=now)
    rows = queue.items.filter(given, opinion=FIRST_OPINION).order_by().values_list("arm").annotate(items=Count("pk"))
    return dict(rows)


def is_hidden(item: ReviewItem) -> bool:
    return bool(hidden_items(item.queue, [item]))


def hidden_items(queue: ReviewQueue, items: Iterable[ReviewItem]) -> set[UUID]:
    """Returns the items whose request would reveal the arm: unlabelled, or waiting for a second person."""
    if not queue.due_labels:
        return set()
    given = list(items)
    done = [item.request_id for item in given if item.state == ItemState.DONE]
    open_ones = queue.items.filter(request_id__in=done, state=ItemState.OPEN)
    waiting = set(open_ones.values_list("request_id", flat=True))
    return {item.pk for item in given if item.state != ItemState.DONE or item.request_id in waiting}


def _waiting_labels(project_id: UUID, now: datetime) -> QuerySet[EvaluationTask]:
    tasks = EvaluationTask.objects.filter(project_id=project_id, state=TaskState.DONE, is_erased=False)
    return tasks.filter(label_due=True, labelled_at=None, due_at__gt=now - LABEL_PATIENCE)


def _in_turn(queue: ReviewQueue, room: int, now: datetime) -> Iterator[EvaluationTask]:
    """Yields one task of each arm in turn, by minute and hash.

    Within a turn the hashes decide the order, so that a place does not reveal the arm.
    """
    if queue.evaluator_id is None:
        return
    own = free_labels(queue.project_id, now).filter(version__evaluator_id=queue.evaluator_id)
    free = own.order_by("due_at", "position", "pk")
    arms = free.order_by().values_list("rollout_id", "variant").distinct()
    by_arm = [list(free.filter(rollout_id=rollout, variant=variant)[:room]) for rollout, variant in arms]
    yield from islice(_turns(by_arm), room)


def _turns(by_arm: Sequence[Sequence[EvaluationTask]]) -> Iterator[EvaluationTask]:
    seen: set[UUID] = set()
    for turn in zip_longest(*by_arm):
        for task in sorted((one for one in turn if one is not None), key=lambda one: (one.position, one.pk)):
            # Two online evaluations may have the same answer due.
            if task.request_id not in seen:
                seen.add(task.request_id)
                yield task


def _item(queue: ReviewQueue, position: int, task: EvaluationTask) -> ReviewItem:
    return ReviewItem(
        queue=queue,
        position=position,
        request_id=task.request_id,
        ts=task.requested_at,
        arm=f"{task.rollout_id or ''}:{task.variant}",
        counts_until=task.due_at + LABEL_PATIENCE,
    )


def _expired(queue: ReviewQueue, now: datetime) -> QuerySet[ReviewItem]:
    free = Q(claimed_until=None) | Q(claimed_until__lt=now)
    return queue.items.filter(free, state=ItemState.OPEN, opinion=FIRST_OPINION, counts_until__lt=now)
