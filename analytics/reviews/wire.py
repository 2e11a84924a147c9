from __future__ import annotations

from datetime import datetime
from typing import Literal, TypedDict
from uuid import UUID

from analytics.models.reviews import ReviewItem, ReviewQueue
from analytics.reviews.comparison import Agreement
from analytics.reviews.selectors import ReviewProgress
from analytics.wire.conversations import ConversationTurn
from analytics.wire.feedback import ScoreEntry
from core.wire.shown import shown_as


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


def queue_entry(queue: ReviewQueue, progress: ReviewProgress) -> ReviewQueueEntry:
    return shown_as(ReviewQueueEntry, queue, progress=progress)


def item_entry(item: ReviewItem, *, is_hidden: bool) -> ReviewItemEntry:
    request_id = None if is_hidden else item.request_id
    return shown_as(ReviewItemEntry, item, request_id=request_id, request_created_at=item.ts)


def agreement_entry(found: Agreement) -> ReviewAgreementEntry:
    return shown_as(ReviewAgreementEntry, found)


def people_entry(found: Agreement) -> ReviewPeopleAgreement:
    return shown_as(ReviewPeopleAgreement, found)
