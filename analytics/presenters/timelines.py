from __future__ import annotations

from functools import partial
from uuid import UUID

from analytics.presenters.requests import find_request
from analytics.queries.request_cursor import RequestCursor
from analytics.queries.requests import RequestRow, get_requests
from analytics.queries.session_requests import find_neighbour, list_session_requests
from analytics.queries.telemetry import MAX_RECORDS, trace_logs
from analytics.queries.traces import (
    TraceSpans,
    find_trace,
    is_being_deleted,
    session_trace_logs,
    session_trace_spans,
    trace_sessions,
)
from analytics.queries.visible import both_visible
from analytics.telemetry.rows import LogRow
from analytics.wire.requests import RequestNeighbours
from analytics.wire.telemetry import LogRecord, log_entry
from analytics.wire.timelines import SessionTimeline, Trace, session_timeline
from core.errors import NotFoundError

MAX_REQUESTS = 200


def timeline(project_id: UUID, session_id: str, offset: int = 0) -> SessionTimeline:
    """Behind the beginning of a session, those of the requests from `offset` on and of their traces."""
    listed = partial(list_session_requests, project_id, session_id, limit=MAX_REQUESTS, offset=offset)
    if offset:
        count, requests = listed() or (0, [])
        between = (requests[0].ts, requests[-1].ts) if requests else None
        traced = session_trace_spans(project_id, session_id, between) if between else TraceSpans([], [])
    else:
        traced, found = both_visible(project_id, partial(session_trace_spans, project_id, session_id), listed)
        count, requests = found or (0, [])
    end = offset + len(requests)
    truncated = len(traced.spans) >= MAX_RECORDS or count > end
    others = get_requests(project_id, traced.shown_requests(beside={row.request_id for row in requests}))
    shown = session_timeline(traced.spans, [*requests, *others], truncated=truncated)
    return {**shown, "next_offset": end if requests and count > end else None}


def logs(project_id: UUID, session_id: str) -> list[LogRecord]:
    return [log_entry(row) for row in session_trace_logs(project_id, session_id)]


def neighbours(project_id: UUID, request_id: UUID) -> RequestNeighbours:
    """The requests before and after this one in its session, or in the log without one. Raises NotFoundError."""
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


def trace(project_id: UUID, trace_id: str) -> Trace:
    """Returns the first spans and logs of a trace, whose id is in lower case. Raises NotFoundError."""
    if is_being_deleted(project_id, trace_id):
        raise no_trace()
    found, (logs, named) = both_visible(
        project_id, partial(find_trace, project_id, trace_id), partial(_logs_and_sessions, project_id, trace_id)
    )
    if not (found.spans or logs):
        raise no_trace()
    requests = get_requests(project_id, found.shown_requests())
    timeline = session_timeline(found.spans, requests, truncated=len(found.spans) >= MAX_RECORDS)
    sessions = dict.fromkeys([*named, *(row.session_id for row in found.requests if row.session_id)])
    return {"trace_id": trace_id, "sessions": [*sessions], **timeline, "logs": [log_entry(row) for row in logs]}


def _logs_and_sessions(project_id: UUID, trace_id: str) -> tuple[list[LogRow], list[str]]:
    return trace_logs(project_id, [trace_id]), trace_sessions(project_id, trace_id)


def no_trace() -> NotFoundError:
    return NotFoundError("There is no such trace in this project.", code="trace_not_found")
