from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.utils import timezone

from analytics.parameters.ranges import TimeRange
from analytics.presenters.metrics import ranged
from analytics.queries.bad_ratings import list_bad_ratings
from analytics.queries.feedback import feedback_figures
from analytics.queries.scores import ScoreFilter, score_figures
from analytics.queries.session_requests import list_session_requests
from core.errors import NotFoundError
from core.wire.pagination import MAXIMUM_LIMIT, Listing, Page


def score_metrics(project_id: UUID, filters: ScoreFilter, group_by: str, page: Page) -> Listing:
    count, figures = score_figures(project_id, filters, group_by, limit=page.limit, offset=page.offset)
    return ranged(TimeRange(filters.start, filters.end), count, figures, group_by=group_by)


def feedback_metrics(project_id: UUID, start: datetime, end: datetime, page: Page, group_by: str = "none") -> Listing:
    count, rows = feedback_figures(project_id, start, end, group_by, limit=page.limit, offset=page.offset)
    return ranged(TimeRange(start, end), count, rows, group_by=group_by)


def bad_rating_metrics(
    project_id: UUID, start: datetime, end: datetime, page: Page, prompt_config_id: UUID | None = None
) -> Listing:
    rows = list_bad_ratings(project_id, start, end, timezone.now(), prompt_config_id=prompt_config_id)
    return ranged(TimeRange(start, end), len(rows), page.of(rows))


def session_request_ids(project_id: UUID, session_id: str) -> list[str]:
    """The session's first MAXIMUM_LIMIT requests, to find their scores. Raises NotFoundError."""
    found = list_session_requests(project_id, session_id, limit=MAXIMUM_LIMIT, offset=0)
    if found is None:
        raise NotFoundError("There is no such session in this project.", code="session_not_found")
    return [str(row.request_id) for row in found[1]]
