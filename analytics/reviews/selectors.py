"""Reads review queues, their items and their progress, each within one project."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Count, QuerySet

from analytics.models.reviews import ItemState, ReviewItem, ReviewQueue
from analytics.reviews.errors import ItemNotFoundError, QueueNotFoundError


@dataclass(frozen=True, slots=True)
class Progress:
    """The numbers of a queue's items by state."""

    open: int = 0
    done: int = 0
    skipped: int = 0

    @property
    def items(self) -> int:
        return self.open + self.done + self.skipped


def list_queues(project_id: UUID, state: str = "") -> QuerySet[ReviewQueue]:
    """Returns the queues of a project, the latest first; `state` keeps those in it."""
    queues = ReviewQueue.objects.for_project(project_id).order_by("-created_at", "-id")
    return queues.filter(state=state) if state else queues


def get_queue(project_id: UUID, queue_id: UUID) -> ReviewQueue:
    """Returns one queue. Raises QueueNotFoundError."""
    found = ReviewQueue.objects.for_project(project_id).filter(pk=queue_id).first()
    if found is None:
        raise QueueNotFoundError
    return found


def get_item(queue: ReviewQueue, item_id: UUID) -> ReviewItem:
    """Returns one item of a queue. Raises ItemNotFoundError."""
    found = queue.items.filter(pk=item_id).first()
    if found is None:
        raise ItemNotFoundError
    return found


def list_items(queue: ReviewQueue, *, state: str = "", assignee: str = "") -> QuerySet[ReviewItem]:
    """Returns the items of a queue by position; an empty `state` or `assignee` is no filter."""
    given = {name: value for name, value in (("state", state), ("assignee", assignee)) if value}
    return queue.items.filter(**given).order_by("position")


def progress_of(queue_ids: Iterable[UUID]) -> Mapping[UUID, Progress]:
    """Returns the progress by queue id, without the queues that have no items."""
    rows = (
        ReviewItem.objects.filter(queue_id__in=list(queue_ids))
        .order_by()
        .values_list("queue_id", "state")
        .annotate(items=Count("pk"))
    )
    counts: dict[UUID, dict[str, int]] = {}
    for queue_id, state, items in rows:
        counts.setdefault(queue_id, {})[state] = items
    return {
        queue_id: Progress(
            open=found.get(ItemState.OPEN, 0),
            done=found.get(ItemState.DONE, 0),
            skipped=found.get(ItemState.SKIPPED, 0),
        )
        for queue_id, found in counts.items()
    }
