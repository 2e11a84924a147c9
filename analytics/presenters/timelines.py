"""Presents the spans and requests of a session as one timeline, and the requests beside a request."""

from __future__ import annotations

from functools import partial
from uuid import UUID

from analytics.presenters.requests import find_request
from analytics.queries.request_cursor import RequestCursor
from analytics.queries.requests import RequestRow
from analytics.queries.session_requests import find_neighbour, list_session_requests
from analytics.queries.telemetry import MAX_RECORDS, session_spans
from analytics.queries.visible import both_visible
from analytics.wire.requests import RequestNeighbours
from analytics.wire.timelines import SessionTimeline, session_timeline

MAX_REQUESTS = 200


def timeline(project_id: UUID, session_id: str) -> SessionTimeline:
    """Returns the first spans and requests of a session as trees; an unknown session has none."""
    spans, found = both_visible(
        project_id,
        partial(session_spans, project_id, session_id),
        partial(list_session_requests, project_id, session_id, limit=MAX_REQUESTS, offset=0),
    )
    count, requests = found or (0, [])
    truncated = len(spans) >= MAX_RECORDS or count > len(requests)
    return session_timeline(spans, requests, truncated=truncated)


def neighbours(project_id: UUID, request_id: UUID) -> RequestNeighbours:
    """Returns the requests before and after this one in its session, or in the log without one. Raises
    NotFoundError."""
    row = find_request(project_id, request_id)
    return neighbours_of(project_id, row)


def neighbours_of(project_id: UUID, row: RequestRow) -> RequestNeighbours:
    before, after = both_visible(
        project_id,
        partial(find_neighbour, project_id, row, later=False),
        partial(find_neighbour, project_id, row, later=True),
    )
    return {"session_id": row.session_id or None, "previous": _id(before), "next": _id(after)}


def _id(found: RequestCursor | None) -> UUID | None:
    return found.request_id if found else None
