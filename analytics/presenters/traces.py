"""Presents a trace by its id: all its spans and requests as trees, its logs, and the sessions that it belongs to."""

from __future__ import annotations

from functools import partial
from uuid import UUID

from analytics.queries.requests import get_requests
from analytics.queries.telemetry import MAX_RECORDS, trace_logs
from analytics.queries.trace_lookup import find_trace, is_being_deleted, trace_sessions
from analytics.queries.visible import both_visible
from analytics.telemetry.rows import LogRow
from analytics.wire.telemetry import log_entry
from analytics.wire.timelines import Trace, session_timeline
from core.errors import NotFoundError


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
