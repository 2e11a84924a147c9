"""The JSON of review queues."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, TypedDict
from uuid import UUID

from analytics.agreement import Estimate
from analytics.models.reviews import ReviewItem, ReviewQueue
from analytics.reviews.comparison import Agreement
from analytics.reviews.selectors import Progress
from analytics.wire.conversations import ConversationTurn
from analytics.wire.scores import ScoreEntry


class ReviewProgress(TypedDict):
    items: int
    open: int
    done: int
    skipped: int


class ReviewQueueEntry(TypedDict):
    id: UUID
    name: str
    state: Literal["open", "closed"]
    filter: dict[str, str | list[str]]
    sample_size: int
    score_name: str
    kind: Literal["boolean", "number", "category"]
    labels: list[str]
    minimum: float | None
    maximum: float | None
    instructions: str
    compared_score_name: str
    evaluator_id: UUID | None
    due_labels: bool
    created_by: str
    created_at: datetime
    closed_at: datetime | None
    progress: ReviewProgress


class ReviewItemEntry(TypedDict):
    """`request_id` is null while it is hidden: that of a due label until it is given. `opinion` is 2 where a second
    person scores the same answer."""

    id: UUID
    queue_id: UUID
    position: int
    opinion: int
    request_id: UUID | None
    request_created_at: datetime
    state: Literal["open", "done", "skipped"]
    assignee: str
    claimed_by: str
    claimed_until: datetime | None
    reviewed_by: str
    reviewed_at: datetime | None
    score_id: UUID | None


class NextReviewItem(TypedDict):
    item: ReviewItemEntry | None
    progress: ReviewProgress


class ScoredReviewItem(NextReviewItem):
    score: ScoreEntry


class AssignedReviewItems(TypedDict):
    assigned: int


class ReviewEstimate(TypedDict):
    value: float
    low: float | None
    high: float | None


class ReviewAgreementEntry(TypedDict):
    evaluator_type: str
    compared: int
    equal: ReviewEstimate | None
    kappa: ReviewEstimate | None
    correlation: ReviewEstimate | None
    mean_difference: float | None


class ReviewPeopleAgreement(TypedDict):
    compared: int
    equal: ReviewEstimate | None
    kappa: ReviewEstimate | None
    correlation: ReviewEstimate | None
    mean_difference: float | None


class ReviewConversation(TypedDict):
    """`turns` end with the answer; null where the texts are not stored. `omitted_turns` came before them."""

    turns: list[ConversationTurn] | None
    omitted_turns: int


class ReviewAgreement(TypedDict):
    """`people` compares two people on the answers of due labels that both scored; null without any."""

    reviewed: int
    score_name: str
    compared_score_name: str
    people: ReviewPeopleAgreement | None
    evaluators: list[ReviewAgreementEntry]


def progress_entry(progress: Progress) -> ReviewProgress:
    return {"items": progress.items, "open": progress.open, "done": progress.done, "skipped": progress.skipped}


def queue_entry(queue: ReviewQueue, progress: Progress) -> ReviewQueueEntry:
    return {
        "id": queue.pk,
        "name": queue.name,
        "state": queue.state,  # type: ignore[typeddict-item]  # the column holds one of QueueState
        "filter": queue.filter,
        "sample_size": queue.sample_size,
        "score_name": queue.score_name,
        "kind": queue.kind,  # type: ignore[typeddict-item]  # the column holds one of RubricKind
        "labels": queue.labels,
        "minimum": queue.minimum,
        "maximum": queue.maximum,
        "instructions": queue.instructions,
        "compared_score_name": queue.compared_score_name,
        "evaluator_id": queue.evaluator_id,
        "due_labels": queue.due_labels,
        "created_by": queue.created_by,
        "created_at": queue.created_at,
        "closed_at": queue.closed_at,
        "progress": progress_entry(progress),
    }


def item_entry(item: ReviewItem, *, is_hidden: bool) -> ReviewItemEntry:
    return {
        "id": item.pk,
        "queue_id": item.queue_id,
        "position": item.position,
        "opinion": item.opinion,
        "request_id": None if is_hidden else item.request_id,
        "request_created_at": item.ts,
        "state": item.state,  # type: ignore[typeddict-item]  # the column holds one of ItemState
        "assignee": item.assignee,
        "claimed_by": item.claimed_by,
        "claimed_until": item.claimed_until,
        "reviewed_by": item.reviewed_by,
        "reviewed_at": item.reviewed_at,
        "score_id": item.score_id,
    }


def agreement_entry(found: Agreement) -> ReviewAgreementEntry:
    return {"evaluator_type": found.evaluator_type, **people_entry(found)}


def people_entry(found: Agreement) -> ReviewPeopleAgreement:
    return {
        "compared": found.compared,
        "equal": _estimate(found.equal),
        "kappa": _estimate(found.kappa),
        "correlation": _estimate(found.correlation),
        "mean_difference": found.mean_difference,
    }


def _estimate(found: Estimate | None) -> ReviewEstimate | None:
    return None if found is None else {"value": found.value, "low": found.low, "high": found.high}
