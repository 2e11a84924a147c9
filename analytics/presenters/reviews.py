from __future__ import annotations

from uuid import UUID

from analytics.models import Score
from analytics.models.reviews import ReviewItem, ReviewQueue
from analytics.reviews import selectors
from analytics.reviews.comparison import agreement_of_people, agreements
from analytics.reviews.due_labels import hidden_items, is_hidden
from analytics.reviews.wire import (
    NextReviewItem,
    ReviewAgreement,
    ReviewItemEntry,
    ReviewQueueEntry,
    ScoredReviewItem,
    agreement_entry,
    item_entry,
    people_entry,
    queue_entry,
)
from analytics.wire.feedback import score_entries
from core.wire.pagination import Listing, Page


def queues(project_id: UUID, page: Page, *, state: str = "") -> Listing:
    found = selectors.list_queues(project_id, state)
    rows = list(found[page.offset : page.offset + page.limit])
    progress = selectors.progress_of(row.pk for row in rows)
    return Listing(found.count(), [queue_entry(row, progress[row.pk]) for row in rows])


def queue(project_id: UUID, queue_id: UUID) -> ReviewQueueEntry:
    row = selectors.get_queue(project_id, queue_id)
    return queue_entry(row, _progress(row.pk))


def items(queue: ReviewQueue, page: Page, *, state: str = "", assignee: str = "") -> Listing:
    found = selectors.list_items(queue, state=state, assignee=assignee)
    rows = list(found[page.offset : page.offset + page.limit])
    hidden = hidden_items(queue, rows)
    return Listing(found.count(), [item_entry(row, is_hidden=row.pk in hidden) for row in rows])


def next_item(queue_id: UUID, item: ReviewItem | None) -> NextReviewItem:
    return {"item": entry_of(item) if item else None, "progress": _progress(queue_id)}


def entry_of(item: ReviewItem) -> ReviewItemEntry:
    return item_entry(item, is_hidden=is_hidden(item))


def scored_item(item: ReviewItem, score: Score) -> ScoredReviewItem:
    return {**next_item(item.queue_id, item), "score": score_entries([score])[0]}


def agreement(project_id: UUID, queue_id: UUID) -> ReviewAgreement:
    row = selectors.get_queue(project_id, queue_id)
    people = agreement_of_people(row)
    return {
        "reviewed": _progress(queue_id)["done"],
        "score_name": row.score_name,
        "compared_score_name": row.compared_score_name or row.score_name,
        "people": None if people is None else people_entry(people),
        "evaluators": [agreement_entry(found) for found in agreements(row)],
    }


def _progress(queue_id: UUID) -> selectors.ReviewProgress:
    return selectors.progress_of([queue_id])[queue_id]
