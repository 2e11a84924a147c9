"""Copies feedback, with what is known of the request that it names.

The request may not have been in the store when the feedback came, so that nobody could see whose it is. When it is
there, and another session's, the feedback stays and names it no more.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from datetime import datetime
from typing import Any
from uuid import UUID

from analytics.models import Feedback
from analytics.scores.sync import rows
from analytics.scores.sync.copies import CHUNK, insert
from analytics.scores.sync.looks import FIRST_PAUSE, next_look, requests_of
from analytics.scores.sync.requests import ScoredRequest
from core.chunks import chunks

logger = logging.getLogger("analytics.score_sync")


def copy_feedback(now: datetime) -> int:
    """Copies some of the feedback that is due; returns how much. Raises the errors of the store."""
    due = list(Feedback.objects.filter(copy_due_at__lte=now).order_by("copy_due_at")[:CHUNK])
    requests = requests_of({row.pk: (row.project_id, row.request_id) for row in due})
    strangers = [row for row in due if row.pk in requests and requests[row.pk].session_id != row.session_id]
    for row in strangers:
        row.request_id, row.request_hash = None, ""
    news = [row for row in due if row.request_id is None or row.pk in requests or not _was_looked_at(row)]
    insert("feedback", rows.FEEDBACK, [_copy(row, requests.get(row.pk)) for row in news])
    _forget_requests(strangers)
    next_looks: defaultdict[datetime | None, list[UUID]] = defaultdict(list)
    for row in due:
        waits = row.request_id is not None and row.pk not in requests
        next_looks[next_look(now, row.created_at) if waits else None].append(row.pk)
    for due_at, ids in next_looks.items():
        for some in chunks(ids):
            Feedback.objects.filter(pk__in=some).update(copy_due_at=due_at)
    return len(due)


def _copy(row: Feedback, found: ScoredRequest | None) -> tuple[Any, ...]:
    request = found if row.request_id is not None else None
    return rows.feedback_row(row, request, is_settled=found is not None)


def _forget_requests(strangers: list[Feedback]) -> None:
    """Has feedback name no request of another session. It was taken before anybody could see whose the request is."""
    for row in strangers:
        logger.warning("feedback.request_forgotten project_id=%s feedback_id=%s", row.project_id, row.pk)
    for some in chunks([row.pk for row in strangers]):
        Feedback.objects.filter(pk__in=some).update(request_id=None, request_hash="")


def _was_looked_at(row: Feedback) -> bool:
    """Returns whether the store has the row already, only without its request."""
    return row.copy_due_at is not None and row.copy_due_at - row.created_at >= FIRST_PAUSE
