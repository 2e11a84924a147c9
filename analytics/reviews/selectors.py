from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypedDict
from uuid import UUID

from django.db.models import Count, QuerySet

from analytics.models.reviews import ItemState, ReviewItem, ReviewQueue
from analytics.reviews.errors import ItemNotFoundError, QueueNotFoundError
from core.resources.rows import get_or_raise


class ReviewProgress(TypedDict):
    items: int
    open: int
    done: int
    skipped: int


def list_queues(project_id: UUID, state: str = "") -> QuerySet[ReviewQueue]:
    queues = ReviewQueue.objects.for_project(project_id).order_by("-created_at", "-id")
    return queues.filter(state=state) if state else queues


def get_queue(project_id: UUID, queue_id: UUID) -> ReviewQueue:
    return get_or_raise(ReviewQueue.objects.for_project(project_id), QueueNotFoundError, pk=queue_id)


def get_item(queue: ReviewQueue, item_id: UUID) -> ReviewItem:
    return get_or_raise(queue.items, ItemNotFoundError, pk=item_id)


def list_items(queue: ReviewQueue, *, state: str = "", assignee: str = "") -> QuerySet[ReviewItem]:
    given = {name: value for name, value in (("state", state), ("assignee", assignee)) if value}
    return queue.items.filter(**given).order_by("position")


def progress_of(queue_ids: Iterable[UUID]) -> Mapping[UUID, ReviewProgress]:
    """Returns the progress by queue id."""
    ids = list(queue_ids)
    rows = ReviewItem.objects.filter(queue_id__in=ids).order_by().values_list("queue_id", "state")
    counts = {(queue_id, state): items for queue_id, state, items in rows.annotate(items=Count("pk"))}
    return {queue_id: _progress([counts.get((queue_id, state), 0) for state in ItemState]) for queue_id in ids}


def _progress(by_state: Sequence[int]) -> ReviewProgress:
    is_open, done, skipped = by_state
    return {"items": sum(by_state), "open": is_open, "done": done, "skipped": skipped}
