"""Copies due scores and feedback. Any number of workers may do so at once: a row copied twice is stored once.

A row is due when it is made and after each change. A row whose request is not in the store yet is copied at once, and
looked at again until the request is there or too old to come.
"""

from __future__ import annotations

import hashlib
import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.utils import timezone

from analytics.clickhouse import client
from analytics.errors import AnalyticsLimitError
from analytics.identifiers import gateway_id
from analytics.models import CopyWithdrawal, Feedback, Score
from analytics.scores.sync import rows
from analytics.scores.sync.requests import ScoredRequest, find_requests

logger = logging.getLogger("analytics.score_sync")

CHUNK = 2000
_IDS_AT_ONCE = 500

# Pairs of an age and a pause: while the request of a score up to this age is unknown, the score is looked at again
# after the pause.
_LOOKS = (
    (timedelta(minutes=2), timedelta(seconds=20)),
    (timedelta(minutes=15), timedelta(minutes=2)),
    (timedelta(hours=2), timedelta(minutes=15)),
    (timedelta(days=2), timedelta(hours=4)),
)


def copy_due() -> int:
    """Copies every due row; returns the number of rows copied or withdrawn.

    Raises AnalyticsUnavailableError and AnalyticsLimitError; what was not copied stays due. To copy everything once
    more, into new tables, set `copy_due_at` of scores to their `updated_at`, of feedback to its `created_at`.
    """
    copied = 0
    for copy_some in (_withdraw_some, _copy_scores, _copy_feedback):
        count = CHUNK
        while count == CHUNK:
            count = copy_some(timezone.now())
            copied += count
    if copied:
        logger.info("copy.done rows=%d", copied)
    return copied


def _copy_scores(now: datetime) -> int:
    due = list(Score.objects.filter(copy_due_at__lte=now).order_by("copy_due_at")[:CHUNK])
    requests = _requests_of(due)
    news = [score for score in due if score.pk in requests or not _was_looked_at(score)]
    _insert("scores", rows.SCORES, [rows.score_row(score, requests.get(score.pk)) for score in news])
    # The scores are grouped by their next time and revision. A row that has changed meanwhile has another revision and
    # stays due.
    settled: defaultdict[tuple[datetime | None, int], list[UUID]] = defaultdict(list)
    for score in due:
        settled[_next_look(score, now, known=score.pk in requests), score.revision].append(score.pk)
    for (due_at, revision), ids in settled.items():
        for some in _parts(ids):
            Score.objects.filter(pk__in=some, revision=revision).update(copy_due_at=due_at)
    return len(due)


def _requests_of(scores: Iterable[Score]) -> Mapping[UUID, ScoredRequest]:
    """Returns the stored requests of these scores by the score's key."""
    request_ids: defaultdict[UUID, dict[UUID, UUID]] = defaultdict(dict)
    for score in scores:
        request_id = gateway_id(score.request_id)
        if request_id is not None:
            request_ids[score.project_id][score.pk] = request_id
    found: dict[UUID, ScoredRequest] = {}
    for project_id, ids in request_ids.items():
        try:
            requests = find_requests(project_id, ids.values())
        except AnalyticsLimitError:
            # A score without its request is copied for now.
            logger.warning("copy.requests_not_found project_id=%s scores=%d", project_id, len(ids))
            continue
        found.update({pk: requests[request_id] for pk, request_id in ids.items() if request_id in requests})
    return found


def _was_looked_at(score: Score) -> bool:
    """Returns whether the store has this revision already, only without its request, which was put off by one of
    _LOOKS."""
    return score.copy_due_at is not None and score.copy_due_at - score.updated_at >= _LOOKS[0][1]


def _next_look(score: Score, now: datetime, *, known: bool) -> datetime | None:
    if known or gateway_id(score.request_id) is None:
        return None
    age = now - score.updated_at
    return next((now + pause for until, pause in _LOOKS if age < until), None)


def _copy_feedback(now: datetime) -> int:
    due = list(Feedback.objects.filter(copy_due_at__lte=now).order_by("copy_due_at")[:CHUNK])
    _insert("feedback", rows.FEEDBACK, [rows.feedback_row(row) for row in due])
    for some in _parts([row.pk for row in due]):
        Feedback.objects.filter(pk__in=some).update(copy_due_at=None)
    return len(due)


def _withdraw_some(now: datetime) -> int:
    due = list(CopyWithdrawal.objects.order_by("pk")[:CHUNK])
    for table in sorted({row.table for row in due}):
        withdrawn = [row for row in due if row.table == table]
        # The withdrawals are written first, so that a copy which another worker is writing does not outlive them.
        _insert(table, rows.WITHDRAWALS, [rows.withdrawal_row(row) for row in withdrawn])
        by_project: defaultdict[UUID, list[CopyWithdrawal]] = defaultdict(list)
        for row in withdrawn:
            by_project[row.project_id].append(row)
        for project_id, ours in by_project.items():
            _delete_copies(table, project_id, ours)
    for some in _parts([row.pk for row in due]):
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


def _insert(table: str, columns: Sequence[str], copies: Sequence[tuple[Any, ...]]) -> None:
    if not copies:
        return
    # The token depends on the ids and versions of the rows alone, so that the same rows sent again are the same insert.
    place = columns.index("id"), columns.index("version")
    revisions = ",".join(f"{row[place[0]]}:{row[place[1]]}" for row in copies)
    client.insert(table, columns, copies, token=hashlib.sha256(revisions.encode()).hexdigest())


def _parts(ids: list[Any]) -> Iterable[list[Any]]:
    return (ids[start : start + _IDS_AT_ONCE] for start in range(0, len(ids), _IDS_AT_ONCE))
