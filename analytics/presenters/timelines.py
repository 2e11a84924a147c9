"""Presents the spans and requests of a session and its traces as one timeline, and the requests beside a request."""

from __future__ import annotations

from functools import partial
from uuid import UUID

from analytics.presenters.requests import find_request
from analytics.queries.request_cursor import RequestCursor
from analytics.queries.requests import RequestRow, get_requests
from analytics.queries.session_requests import find_neighbour, list_session_requests
from analytics.queries.session_traces import session_trace_logs, session_trace_spans
from analytics.queries.telemetry import MAX_RECORDS
from analytics.queries.visible import both_visible
from analytics.wire.requests import RequestNeighbours
from analytics.wire.telemetry import LogRecord, log_entry
from analytics.wire.timelines import SessionTimeline, session_timeline

MAX_REQUESTS = 200


def timeline(project_id: UUID, session_id: str) -> SessionTimeline:
    """Returns the first spans and requests of a session and of its traces as trees; an unknown session has none."""
    traced, found = both_visible(
        project_id,
        partial(session_trace_spans, project_id, session_id),
        partial(list_session_requests, project_id, session_id, limit=MAX_REQUESTS, offset=0),
    )
    count, requests = found or (0, [])
    truncated = len(traced.spans) >= MAX_RECORDS or count > len(requests)
    others = get_requests(project_id, traced.shown_requests(beside={row.request_id for row in requests}))
    return session_timeline(traced.spans, [*requests, *others], truncated=truncated)


def logs(project_id: UUID, session_id: str) -> list[LogRecord]:
    """Returns the first log records of a session and of its traces."""
    return [log_entry(row) for row in session_trace_logs(project_id, session_id)]


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
