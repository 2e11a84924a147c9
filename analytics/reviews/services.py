from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Case, IntegerField, Q, QuerySet, Value, When
from django.utils import timezone

from analytics.models import Evaluator, EvaluatorType, Score
from analytics.models.reviews import FIRST_OPINION, SECOND_OPINION, ItemState, QueueState, ReviewItem, ReviewQueue
from analytics.queries.request_filters import RequestFilter
from analytics.queries.requests import get_request_time
from analytics.queries.review_sample import SampledRow, sample_requests
from analytics.reviews import due_labels
from analytics.reviews.errors import (
    ItemNotFoundError,
    ItemTakenError,
    NothingToReviewError,
    QueueClosedError,
    QueueExistsError,
    QueueFullError,
    RequestNotFoundError,
)
from analytics.reviews.rubric import verdict_of
from analytics.reviews.selectors import get_queue
from analytics.scores.services import NewScore, record_score
from core.errors import ValidationError
from core.resources.rows import get_or_raise

logger = logging.getLogger("analytics.reviews")

MAX_ITEMS = 2_000

_CLAIM = timedelta(minutes=10)
_ROWS_AT_ONCE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class NewQueue:
    """`parameters` are those of `GET requests` as texts or lists of them; `filters` is their parsed form."""

    name: str
    parameters: Mapping[str, str | list[str]]
    filters: RequestFilter
    score_name: str
    kind: str
    sample_size: int
    labels: list[str] = field(default_factory=list)
    minimum: float | None = None
    maximum: float | None = None
    instructions: str = ""
    compared_score_name: str = ""
    evaluator_id: UUID | None = None
    due_labels: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    value: float | bool | None = None
    label: str = ""
    reason: str = ""


def create_queue(*, project_id: UUID, new: NewQueue, actor: str) -> ReviewQueue:
    """Creates a queue of the matching requests, or of an evaluator's due labels, of which there may be none yet.

    Raises ValidationError if the evaluator does not exist or has no labels due, QueueExistsError, NothingToReviewError
    and the errors of the store.
    """
    evaluators = Evaluator.objects.for_project(project_id)
    if new.evaluator_id is not None and not evaluators.filter(pk=new.evaluator_id).exists():
        raise ValidationError.of_field("evaluator_id", "There is no such evaluator in this project.")
    if ReviewQueue.objects.for_project(project_id).filter(name=new.name).exists():
        raise QueueExistsError
    chosen = _chosen(project_id, new)
    values = {name: value for name, value in asdict(new).items() if name not in ("parameters", "filters")}
    with transaction.atomic():
        queue, made = ReviewQueue.objects.get_or_create(
            project_id=project_id,
            name=values.pop("name"),
            defaults={**values, "filter": dict(new.parameters), "created_by": actor},
        )
        if not made:
            raise QueueExistsError
        ReviewItem.objects.bulk_create(
            (
                ReviewItem(queue=queue, position=position, request_id=row.request_id, ts=row.ts)
                for position, row in enumerate(chosen, 1)
            ),
            batch_size=_ROWS_AT_ONCE,
        )
        items = due_labels.fill_queue(queue, timezone.now()) if queue.due_labels else len(chosen)
    logger.info("review_queue.created queue_id=%s project_id=%s items=%d actor=%s", queue.pk, project_id, items, actor)
    return queue


def add_item(*, project_id: UUID, queue_id: UUID, request_id: UUID, actor: str) -> tuple[ReviewItem, bool]:
    """Adds a request as the last item; returns the item, and whether it is new.

    Raises QueueNotFoundError, QueueClosedError, QueueFullError, RequestNotFoundError, the errors of the store, and
    ValidationError for a queue of due labels, whose items nobody chooses.
    """
    if get_queue(project_id, queue_id).due_labels:
        raise ValidationError.of_field("request_id", "This queue takes the labels that are due, and no other requests.")
    made_at = get_request_time(project_id, request_id)
    if made_at is None:
        raise RequestNotFoundError
    with transaction.atomic():
        queue = _open(_locked(project_id, queue_id))
        known = queue.items.filter(request_id=request_id).first()
        if known is not None:
            return known, False
        if queue.items.count() >= MAX_ITEMS:
            raise QueueFullError(MAX_ITEMS)
        item = ReviewItem.objects.create(
            queue=queue, position=queue.last_position + 1, request_id=request_id, ts=made_at
        )
    logger.info("review_queue.item_added queue_id=%s item_id=%s actor=%s", queue_id, item.pk, actor)
    return item, True


def close_queue(*, project_id: UUID, queue_id: UUID, actor: str) -> ReviewQueue:
    """A closed queue takes no scores; its items and scores stay. Idempotent."""
    with transaction.atomic():
        queue = _locked(project_id, queue_id)
        if queue.state != QueueState.CLOSED:
            queue.state, queue.closed_at = QueueState.CLOSED, timezone.now()
            queue.save(update_fields=["state", "closed_at"])
            logger.info("review_queue.closed queue_id=%s actor=%s", queue_id, actor)
    return queue


def claim_next(*, project_id: UUID, queue_id: UUID, actor: str) -> ReviewItem | None:
    """Claims the next open item for a person for some minutes; None if none is left.

    The person's claimed item comes first, then items assigned to the person. Raises QueueClosedError.
    """
    now = timezone.now()
    with transaction.atomic():
        queue = _open(get_queue(project_id, queue_id))
        if queue.due_labels:
            due_labels.fill_queue(queue, now)
        item = _claimable(queue, actor, now).select_for_update(skip_locked=True).first()
        if item is not None:
            item.claimed_by, item.claimed_until = actor, now + _CLAIM
            item.save(update_fields=["claimed_by", "claimed_until"])
    return item


def score_item(
    *, project_id: UUID, queue_id: UUID, item_id: UUID, answer: Answer, actor: str
) -> tuple[ReviewItem, Score]:
    """Records a person's score, or changes the one that the same person gave before.

    Raises ValidationError for an answer that the rubric does not have, QueueClosedError and ItemTakenError.
    """
    with transaction.atomic():
        queue = _open(get_queue(project_id, queue_id))
        if queue.due_labels:
            queue = _open(_locked(project_id, queue_id))
        item = _item_for(queue, item_id, actor)
        verdict = verdict_of(queue, answer.value, answer.label)
        score = record_score(
            project_id=project_id,
            score=NewScore(
                request_id=str(item.request_id),
                score_name=queue.score_name,
                score_value=verdict.value,
                score_type=queue.kind,
                score_label=verdict.label,
                reason=answer.reason,
                evaluator_type=EvaluatorType.HUMAN,
                score_id=f"review:{item.pk}",
            ),
            actor=actor,
        ).row
        _settle(item, ItemState.DONE, actor, score.pk)
        if queue.due_labels and item.opinion == FIRST_OPINION:
            due_labels.give_label(queue, item, verdict.value, timezone.now())
            due_labels.ask_second_person(queue, item)
    return item, score


def skip_item(*, project_id: UUID, queue_id: UUID, item_id: UUID, actor: str) -> ReviewItem:
    with transaction.atomic():
        queue = _open(get_queue(project_id, queue_id))
        item = _item_for(queue, item_id, actor)
        if item.state == ItemState.DONE:
            raise ItemTakenError("The item has a score already.")
        _settle(item, ItemState.SKIPPED, actor, None)
    return item


def assign_items(*, project_id: UUID, queue_id: UUID, assignee: str, count: int | None, actor: str) -> int:
    """Assigns open, unassigned items to a person, the first `count` or all; returns their number.

    An empty `assignee` removes the assignment of all open items.
    """
    with transaction.atomic():
        queue = _open(_locked(project_id, queue_id))
        items = queue.items.filter(state=ItemState.OPEN)
        if not assignee:
            return items.exclude(assignee="").update(assignee="")
        # A second opinion is for anybody but the one who gave the first.
        free = items.filter(assignee="", opinion=FIRST_OPINION).order_by("position").values_list("pk", flat=True)
        assigned = queue.items.filter(pk__in=list(free[:count])).update(assignee=assignee)
    logger.info("review_queue.assigned queue_id=%s items=%d actor=%s", queue_id, assigned, actor)
    return assigned


def is_free_for(item: ReviewItem, actor: str) -> bool:
    return not _problem_of(item, actor)


def delete_items_of(project_id: UUID, request_ids: Iterable[UUID | str]) -> int:
    found = ReviewItem.objects.filter(queue__project_id=project_id, request_id__in=list(request_ids))
    return found.delete()[0]


def delete_items_before(project_id: UUID, moment: datetime) -> int:
    return ReviewItem.objects.filter(queue__project_id=project_id, ts__lt=moment).delete()[0]


def _chosen(project_id: UUID, new: NewQueue) -> Sequence[SampledRow]:
    if new.due_labels and new.evaluator_id is not None:
        due_labels.require_labels(project_id, new.evaluator_id)
        return []
    chosen = sample_requests(project_id, new.filters, size=min(new.sample_size, MAX_ITEMS))
    if not chosen:
        raise NothingToReviewError
    return chosen


def _locked(project_id: UUID, queue_id: UUID) -> ReviewQueue:
    queues = ReviewQueue.objects.select_for_update()
    return queues.get(pk=get_queue(project_id, queue_id).pk)


def _open(queue: ReviewQueue) -> ReviewQueue:
    if queue.state == QueueState.CLOSED:
        raise QueueClosedError
    return queue


def _claimable(queue: ReviewQueue, actor: str, now: datetime) -> QuerySet[ReviewItem]:
    username = _username(actor)
    free = Q(claimed_until__isnull=True) | Q(claimed_until__lt=now) | Q(claimed_by=actor)
    own = Q(assignee="") | Q(assignee=username) if username else Q(assignee="")
    turn = Case(
        When(claimed_by=actor, claimed_until__gte=now, then=Value(0)),
        When(assignee=username or None, then=Value(1)),
        default=Value(2),
        output_field=IntegerField(),
    )
    items = queue.items.filter(free, own, state=ItemState.OPEN)
    if not queue.due_labels:
        return items.order_by(turn, "position")
    own_labels = queue.items.filter(opinion=FIRST_OPINION, reviewed_by=actor).values("request_id")
    items = items.exclude(opinion=SECOND_OPINION, request_id__in=own_labels)
    labelled = due_labels.labels_by_arm(queue, now)
    of_arm = Case(
        When(opinion=SECOND_OPINION, then=Value(-1)),
        *(When(arm=arm, then=Value(count)) for arm, count in labelled.items()),
        default=Value(0),
        output_field=IntegerField(),
    )
    return items.order_by(turn, of_arm, "position")


def _item_for(queue: ReviewQueue, item_id: UUID, actor: str) -> ReviewItem:
    item = get_or_raise(queue.items.select_for_update(), ItemNotFoundError, pk=item_id)
    if problem := _problem_of(item, actor):
        raise ItemTakenError(problem)
    return item


def _problem_of(item: ReviewItem, actor: str) -> str:
    if item.state == ItemState.DONE and item.reviewed_by != actor:
        return "Another person has scored the item."
    is_held = item.claimed_until is not None and item.claimed_until >= timezone.now()
    if item.state == ItemState.OPEN and is_held and item.claimed_by != actor:
        return "Another person has the item open."
    own = item.queue.items.filter(request_id=item.request_id, opinion=FIRST_OPINION, reviewed_by=actor)
    if item.opinion == SECOND_OPINION and own.exists():
        return "You have labelled this answer: the second opinion is another person's."
    return ""


def _settle(item: ReviewItem, state: ItemState, actor: str, score_id: UUID | None) -> None:
    item.state, item.score_id = state, score_id
    item.reviewed_by, item.reviewed_at = actor, timezone.now()
    item.claimed_by, item.claimed_until = "", None
    item.save(update_fields=["state", "score_id", "reviewed_by", "reviewed_at", "claimed_by", "claimed_until"])


def _username(actor: str) -> str:
    kind, _, name = actor.partition(":")
    return name if kind == "user" else ""
