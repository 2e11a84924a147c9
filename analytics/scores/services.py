from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from analytics.errors import ScoreExistsError
from analytics.identifiers import canonical_request_id, id_hash
from analytics.models import DEFAULT_EVALUATOR, CopiedTable, CopyWithdrawal, Feedback, Score, ScoreType
from analytics.scores.sync.announcement import announce
from core.chunks import chunks
from core.errors import ValidationError

logger = logging.getLogger("analytics.scores")

# These fields of a score may change; the others identify it.
_CHANGEABLE = (
    "score_value", "score_type", "score_label", "reason", "evaluator_type", "judge_model", "evaluator_version_id",
)  # fmt: skip
_MOVING = ("updated_at", "copy_due_at", "revision")
_ROWS_AT_ONCE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class NewScore:
    """`score_id` is the client's idempotency key: sent again, it changes the stored score.

    `evaluator_version_id` is None for a client's score.
    """

    request_id: str
    score_name: str
    score_value: float
    score_type: str = ScoreType.NUMBER.value
    score_label: str = ""
    reason: str = ""
    evaluator_type: str = DEFAULT_EVALUATOR
    judge_model: str = ""
    score_id: str = ""
    evaluator_version_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class StoredScore:
    """Neither `created` nor `changed` if the same values were stored before."""

    row: Score
    created: bool
    changed: bool


def record_score(*, project_id: UUID, score: NewScore, actor: str) -> StoredScore:
    """Adds a score or changes the one with the same `score_id`; the same values change nothing.

    Raises ScoreExistsError when the `score_id` belongs to another request or name. The score of a renamed evaluator's
    version keeps its name.
    """
    return _store(project_id, {"score_id": score}, actor)[0]


def record_scores(*, project_id: UUID, scores: Sequence[NewScore], actor: str) -> list[StoredScore]:
    """Stores all of the scores or none.

    Raises ScoreExistsError, and ValidationError for a repeated `score_id`; both name the place.
    """
    _require_distinct(scores)
    return _store(project_id, {f"scores.{place}.score_id": score for place, score in enumerate(scores)}, actor)


def record_feedback(
    *,
    project_id: UUID,
    session_id: str,
    score: int | None,
    text: str,
    actor: str,
    request_id: UUID | None = None,
    edited: bool = False,
) -> Feedback:
    """The session need not have a stored request yet. The caller has checked the request with `require_request`."""
    with transaction.atomic():
        row = Feedback.objects.create(
            project_id=project_id,
            session_id=session_id,
            session_hash=id_hash(session_id),
            request_id=request_id,
            request_hash="" if request_id is None else id_hash(str(request_id)),
            score=score,
            text=text,
            edited=edited,
            created_by=actor,
        )
        transaction.on_commit(announce, robust=True)
    logger.info("feedback.recorded project_id=%s feedback_id=%s actor=%s", project_id, row.pk, actor)
    return row


def delete_scores_of(project_id: UUID, request_ids: Iterable[UUID | str]) -> int:
    """Deletes the scores here now, in ClickHouse as soon as it answers. Returns how many there were."""
    ids = sorted({canonical_request_id(str(request_id)) for request_id in request_ids})
    found = Score.objects.for_project(project_id)
    return sum(_delete(project_id, CopiedTable.SCORES, found.filter(request_id__in=some)) for some in chunks(ids))


def delete_feedback_of_hash(project_id: UUID, session_hash: str) -> int:
    found = Feedback.objects.for_project(project_id).filter(session_hash=session_hash)
    return _delete(project_id, CopiedTable.FEEDBACK, found)


def delete_feedback_of_requests(project_id: UUID, request_hashes: Iterable[str]) -> int:
    hashes = sorted(set(request_hashes))
    found = Feedback.objects.for_project(project_id)
    return sum(
        _delete(project_id, CopiedTable.FEEDBACK, found.filter(request_hash__in=some)) for some in chunks(hashes)
    )


def delete_scores_before(project_id: UUID, moment: datetime) -> int:
    return _delete(project_id, CopiedTable.SCORES, Score.objects.for_project(project_id).filter(created_at__lt=moment))


def delete_feedback_before(project_id: UUID, moment: datetime) -> int:
    return _delete(
        project_id, CopiedTable.FEEDBACK, Feedback.objects.for_project(project_id).filter(created_at__lt=moment)
    )


def _require_distinct(scores: Sequence[NewScore]) -> None:
    seen: set[str] = set()
    for place, score in enumerate(scores):
        if score.score_id and score.score_id in seen:
            raise ValidationError.of_field(f"scores.{place}.score_id", "Is in this batch twice.")
        seen.add(score.score_id)


def _store(project_id: UUID, scores: Mapping[str, NewScore], actor: str) -> list[StoredScore]:
    now = timezone.now()
    times = {"created_at": now, "updated_at": now, "copy_due_at": now}
    rows = {
        field: Score(project_id=project_id, created_by=actor, **asdict(score), **times)
        for field, score in scores.items()
    }
    with transaction.atomic():
        Score.objects.bulk_create([row for row in rows.values() if not row.score_id], batch_size=_ROWS_AT_ONCE)
        known = _insert_named(project_id, [row for row in rows.values() if row.score_id])
        stored = [_settle(field, row, known.get(row.score_id, row)) for field, row in rows.items()]
        changed = [item.row for item in stored if item.changed]
        Score.objects.bulk_update(changed, [*_CHANGEABLE, *_MOVING], batch_size=_ROWS_AT_ONCE)
        transaction.on_commit(announce, robust=True)
    logger.info(
        "scores.recorded project_id=%s created=%d changed=%d actor=%s",
        project_id, sum(item.created for item in stored), len(changed), actor,
    )  # fmt: skip
    return stored


def _insert_named(project_id: UUID, rows: list[Score]) -> dict[str, Score]:
    # The rows are locked in the order of their ids, so that two batches at once meet at the same row first and do not
    # wait for each other.
    waiting = sorted(rows, key=lambda row: row.score_id)
    stored: dict[str, Score] = {}
    while waiting:
        Score.objects.bulk_create(waiting, ignore_conflicts=True, batch_size=_ROWS_AT_ONCE)
        locked = Score.objects.for_project(project_id).select_for_update().order_by("score_id")
        for ids in chunks([row.score_id for row in waiting]):
            stored.update({row.score_id: row for row in locked.filter(score_id__in=ids)})
        # A score that was deleted between the two statements is inserted after all.
        waiting = [row for row in waiting if row.score_id not in stored]
    return stored


def _settle(field: str, given: Score, stored: Score) -> StoredScore:
    if stored.pk == given.pk:
        return StoredScore(stored, created=True, changed=False)
    if given.evaluator_version_id is None:
        given.evaluator_version_id = stored.evaluator_version_id
        is_same = stored.score_name == given.score_name
    else:
        # The evaluator may have another name by now.
        is_same = stored.evaluator_version_id == given.evaluator_version_id or stored.score_name == given.score_name
    if not is_same or stored.request_id != given.request_id:
        raise ScoreExistsError.of_field(field, "There is a score of this id for another request or name.")
    changed = any(getattr(stored, name) != getattr(given, name) for name in _CHANGEABLE)
    if changed:
        for name in (*_CHANGEABLE, "updated_at", "copy_due_at"):
            setattr(stored, name, getattr(given, name))
        stored.revision += 1
    return StoredScore(stored, created=False, changed=changed)


def _delete(project_id: UUID, table: CopiedTable, rows: QuerySet[Any]) -> int:
    deleted = 0
    while count := _delete_some(table, rows):
        deleted += count
    if deleted:
        logger.info("%s.deleted project_id=%s count=%d", table.value, project_id, deleted)
    return deleted


def _delete_some(table: CopiedTable, rows: QuerySet[Any]) -> int:
    with transaction.atomic():
        # The order is that of an index, so that the remaining rows need no sorting.
        found = list(rows.select_for_update().order_by("created_at", "id")[:_ROWS_AT_ONCE])
        CopyWithdrawal.objects.bulk_create(
            CopyWithdrawal(table=table, project_id=row.project_id, row_id=row.pk, row_created_at=row.created_at)
            for row in found
        )
        rows.model._default_manager.filter(pk__in=[row.pk for row in found]).delete()
        if found:
            transaction.on_commit(announce, robust=True)
    return len(found)
