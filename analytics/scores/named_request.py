"""Checks that the request which feedback names is one of the session.

Feedback often comes within seconds of the answer, before the request's record. So an unknown id of the last days is
accepted, and checked again when the feedback is copied (`analytics.scores.sync.run`).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from django.utils import timezone

from analytics.errors import AnalyticsLimitError, AnalyticsUnavailableError
from analytics.identifiers import arrival_of
from analytics.scores.selectors import is_deleted
from analytics.scores.sync.requests import LONGEST_WAY, find_requests
from core.errors import ValidationError

_CLOCKS_DIFFER_BY = timedelta(minutes=1)


def require_request(project_id: UUID, session_id: str, request_id: UUID) -> None:
    """Raises ValidationError if the request is not in this session.

    Raises the errors of the store for a request too old to be still on its way.
    """
    made_at = arrival_of(request_id)
    if made_at is None or made_at > timezone.now() + _CLOCKS_DIFFER_BY:
        raise _no_request()
    if is_deleted(project_id, session_id, request_id, made_at) or not _may_be_of(session_id, project_id, request_id):
        raise _no_request()


def _may_be_of(session_id: str, project_id: UUID, request_id: UUID) -> bool:
    try:
        found = find_requests(project_id, [request_id]).get(request_id)
    except (AnalyticsUnavailableError, AnalyticsLimitError):
        if not _may_be_on_its_way(request_id):
            raise
        return True
    return _may_be_on_its_way(request_id) if found is None else found.session_id == session_id


def _may_be_on_its_way(request_id: UUID) -> bool:
    made_at: datetime | None = arrival_of(request_id)
    return made_at is not None and made_at > timezone.now() - LONGEST_WAY


def _no_request() -> ValidationError:
    return ValidationError.of_field("request_id", "Must be the id of a request of this session.")
