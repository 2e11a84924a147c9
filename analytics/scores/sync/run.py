"""Copies due scores and feedback. Several workers may do so at once: a row copied twice is stored once.

A row is due when it is made and after each change. A row whose request is not in the store yet is copied at once, and
checked again until the request arrives or is too old to come.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils import timezone

from analytics.clickhouse import client
from analytics.identifiers import gateway_id
from analytics.models import CopyWithdrawal, Feedback, Score
from analytics.scores.sync import rows
from analytics.scores.sync.requests import FIRST_PAUSE, ScoredRequest, next_look, requests_of
from analytics.scores.sync.rows import CHUNK, insert
from core.chunks import chunks

logger = logging.getLogger("analytics.score_sync")


def copy_due() -> int:
    """Returns the number of rows copied or withdrawn.

    Raises AnalyticsUnavailableError and AnalyticsLimitError; the rest stays due. To copy everything again, into new
    tables, set `copy_due_at` of scores to their `updated_at`, of feedback to its `created_at`.
    """
    copied = 0
    for copy_some in (_withdraw_some, _copy_scores, copy_feedback):
        count = CHUNK
        while count == CHUNK:
            count = copy_some(timezone.now())
            copied += count
    if copied:
        logger.info("copy.done rows=%d", copied)
    return copied


def is_copy_due() -> bool:
    now = timezone.now()
    return (
        CopyWithdrawal.objects.exists()
        or Score.objects.filter(copy_due_at__lte=now).exists()
        or Feedback.objects.filter(copy_due_at__lte=now).exists()
    )


def _copy_scores(now: datetime) -> int:
    due = list(Score.objects.filter(copy_due_at__lte=now).order_by("copy_due_at")[:CHUNK])
    requests = requests_of({score.pk: (score.project_id, gateway_id(score.request_id)) for score in due})
    news = [score for score in due if score.pk in requests or not _was_looked_at(score, score.updated_at)]
    insert("scores", rows.SCORES, [rows.score_row(score, requests.get(score.pk)) for score in news])
    # The scores are grouped by their next time and revision. A row that has changed meanwhile has another revision and
    # stays due.
    settled: defaultdict[tuple[datetime | None, int], list[UUID]] = defaultdict(list)
    for score in due:
        settled[_next_look(score, now, known=score.pk in requests), score.revision].append(score.pk)
    for (due_at, revision), ids in settled.items():
        for some in chunks(ids):
            Score.objects.filter(pk__in=some, revision=revision).update(copy_due_at=due_at)
    return len(due)


def _was_looked_at(row: Score | Feedback, made_at: datetime) -> bool:
    """Returns whether the store already has the row as it was made at that time, but without its request."""
    return row.copy_due_at is not None and row.copy_due_at - made_at >= FIRST_PAUSE


def _next_look(score: Score, now: datetime, *, known: bool) -> datetime | None:
    if known or gateway_id(score.request_id) is None:
        return None
    return next_look(now, score.updated_at)


def _withdraw_some(now: datetime) -> int:
    due = list(CopyWithdrawal.objects.order_by("pk")[:CHUNK])
    for table in sorted({row.table for row in due}):
        withdrawn = [row for row in due if row.table == table]
        # The withdrawals are written first, so that a copy which another worker is writing does not outlive them.
        insert(table, rows.WITHDRAWALS, [rows.withdrawal_row(row) for row in withdrawn])
        by_project: defaultdict[UUID, list[CopyWithdrawal]] = defaultdict(list)
        for row in withdrawn:
            by_project[row.project_id].append(row)
        for project_id, ours in by_project.items():
            _delete_copies(table, project_id, ours)
    for some in chunks([row.pk for row in due]):
        CopyWithdrawal.objects.filter(pk__in=some).delete()
    return len(due)


def _delete_copies(table: str, project_id: UUID, withdrawn: Sequence[CopyWithdrawal]) -> None:
    """Deletes the content of withdrawn rows: the withdrawal itself only hides it."""
    client.execute(
        f"DELETE FROM {table} WHERE project_id = {{project:UUID}} AND ts >= {{start:DateTime64(6, 'UTC')}}"
        " AND ts <= {end:DateTime64(6, 'UTC')} AND id IN {ids:Array(UUID)} AND is_deleted = 0",
        {
            "project": project_id,
            "start": min(row.row_created_at for row in withdrawn),
            "end": max(row.row_created_at for row in withdrawn),
            "ids": [str(row.row_id) for row in withdrawn],
        },
    )


def copy_feedback(now: datetime) -> int:
    """Copies some of the feedback that is due; returns how much. Raises the errors of the store.

    The request may not have been in the store when the feedback came, so that nobody could see whose it is. When it is
    there, and another session's, the feedback stays and names it no more.
    """
    due = list(Feedback.objects.filter(copy_due_at__lte=now).order_by("copy_due_at")[:CHUNK])
    requests = requests_of({row.pk: (row.project_id, row.request_id) for row in due})
    strangers = [row for row in due if row.pk in requests and requests[row.pk].session_id != row.session_id]
    for row in strangers:
        row.request_id, row.request_hash = None, ""
    news = [
        row for row in due if row.request_id is None or row.pk in requests or not _was_looked_at(row, row.created_at)
    ]
    insert("feedback", rows.FEEDBACK, [_feedback_copy(row, requests.get(row.pk)) for row in news])
    _forget_requests(strangers)
    next_looks: defaultdict[datetime | None, list[UUID]] = defaultdict(list)
    for row in due:
        waits = row.request_id is not None and row.pk not in requests
        next_looks[next_look(now, row.created_at) if waits else None].append(row.pk)
    for due_at, ids in next_looks.items():
        for some in chunks(ids):
            Feedback.objects.filter(pk__in=some).update(copy_due_at=due_at)
    return len(due)


def _feedback_copy(row: Feedback, found: ScoredRequest | None) -> tuple[Any, ...]:
    request = found if row.request_id is not None else None
    return rows.feedback_row(row, request, is_settled=found is not None)


def _forget_requests(strangers: list[Feedback]) -> None:
    """Has feedback name no request of another session. It was taken before anybody could see whose the request is."""
    for row in strangers:
        logger.warning("feedback.request_forgotten project_id=%s feedback_id=%s", row.project_id, row.pk)
    for some in chunks([row.pk for row in strangers]):
        Feedback.objects.filter(pk__in=some).update(request_id=None, request_hash="")
