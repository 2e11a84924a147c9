"""Copies due scores and feedback. Any number of workers may do so at once: a row copied twice is stored once.

A row is due when it is made and after each change. A row whose request is not in the store yet is copied at once, and
looked at again until the request is there or too old to come.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.utils import timezone

from analytics.clickhouse import client
from analytics.identifiers import gateway_id
from analytics.models import CopyWithdrawal, Score
from analytics.scores.sync import rows
from analytics.scores.sync.copies import CHUNK, insert
from analytics.scores.sync.feedback import copy_feedback
from analytics.scores.sync.looks import FIRST_PAUSE, next_look, requests_of
from core.chunks import chunks

logger = logging.getLogger("analytics.score_sync")


def copy_due() -> int:
    """Copies every due row; returns the number of rows copied or withdrawn.

    Raises AnalyticsUnavailableError and AnalyticsLimitError; what was not copied stays due. To copy everything once
    more, into new tables, set `copy_due_at` of scores to their `updated_at`, of feedback to its `created_at`.
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


def _copy_scores(now: datetime) -> int:
    due = list(Score.objects.filter(copy_due_at__lte=now).order_by("copy_due_at")[:CHUNK])
    requests = requests_of({score.pk: (score.project_id, gateway_id(score.request_id)) for score in due})
    news = [score for score in due if score.pk in requests or not _was_looked_at(score)]
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


def _was_looked_at(score: Score) -> bool:
    """Returns whether the store has this revision already, only without its request."""
    return score.copy_due_at is not None and score.copy_due_at - score.updated_at >= FIRST_PAUSE


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
    """Deletes the contents of withdrawn rows, which their withdrawal only hides."""
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
