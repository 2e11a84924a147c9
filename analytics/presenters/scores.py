"""Presents the figures about scores and feedback."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.utils import timezone

from analytics.queries.bad_ratings import list_bad_ratings
from analytics.queries.feedback import feedback_days, feedback_groups
from analytics.queries.scores import ScoreFilter, score_figures
from analytics.queries.session_requests import list_session_requests
from analytics.wire.score_metrics import (
    bad_rating_entry,
    feedback_day_entry,
    feedback_group_entry,
    score_figures_entry,
)
from core.errors import NotFoundError
from core.wire.pagination import MAXIMUM_LIMIT, Listing, Page


def score_metrics(project_id: UUID, filters: ScoreFilter, group_by: str, page: Page) -> Listing:
    count, figures = score_figures(project_id, filters, group_by, limit=page.limit, offset=page.offset)
    results = [score_figures_entry(item, group_by) for item in figures]
    return Listing(count, results, {"start_date": filters.start, "end_date": filters.end, "group_by": group_by})


def feedback_metrics(project_id: UUID, start: datetime, end: datetime, page: Page, group_by: str = "none") -> Listing:
    more = {"start_date": start, "end_date": end, "group_by": group_by}
    if group_by == "none":
        count, days = feedback_days(project_id, start, end, limit=page.limit, offset=page.offset)
        return Listing(count, [feedback_day_entry(day) for day in days], more)
    count, groups = feedback_groups(project_id, start, end, group_by, limit=page.limit, offset=page.offset)
    return Listing(count, [feedback_group_entry(group, group_by) for group in groups], more)


def bad_rating_metrics(
    project_id: UUID, start: datetime, end: datetime, page: Page, prompt_config_id: UUID | None = None
) -> Listing:
    """Lists the prompt versions, of one config or all, that answered a request made in this range."""
    rows = list_bad_ratings(project_id, start, end, timezone.now(), prompt_config_id=prompt_config_id)
    more = {"start_date": start, "end_date": end}
    return Listing(len(rows), page.of([bad_rating_entry(row) for row in rows]), more)


def session_request_ids(project_id: UUID, session_id: str) -> list[str]:
    """Returns the ids of the session's first MAXIMUM_LIMIT requests, to find their scores. Raises NotFoundError."""
    found = list_session_requests(project_id, session_id, limit=MAXIMUM_LIMIT, offset=0)
    if found is None:
        raise NotFoundError("There is no such session in this project.", code="session_not_found")
    return [str(row.request_id) for row in found[1]]
