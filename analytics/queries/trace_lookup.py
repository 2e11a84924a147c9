"""Finds a trace by its id: its spans, and the sessions that it belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from analytics.clickhouse import client
from analytics.identifiers import gateway_id
from analytics.queries import visible
from analytics.queries.request_spans import first_moment, request_at
from analytics.queries.requests import get_request_time
from analytics.queries.traces import TraceSpans, spans_of
from analytics.scores import selectors

_MAX_SESSIONS = 500

# The sessions that its records name, in the order of the first of each.
_SESSIONS = """
SELECT arrayJoin(k.SessionIds) AS session_id FROM (
    SELECT SessionIds, Timestamp FROM otel_trace_spans WHERE ProjectId = {project:UUID} AND TraceId = {trace:String}
    UNION ALL
    SELECT SessionIds, Timestamp FROM otel_trace_logs WHERE ProjectId = {project:UUID} AND TraceId = {trace:String}
) AS k
GROUP BY session_id ORDER BY min(k.Timestamp), session_id LIMIT {limit:UInt32}
"""
_HIDDEN = """
SELECT SessionId AS session_id FROM otel_session_traces
WHERE ProjectId = {project:UUID} AND SessionId IN {sessions:Array(String)} AND TraceId = {trace:String}
UNION ALL
SELECT session_id FROM requests
WHERE project_id = {project:UUID} AND session_id IN {sessions:Array(String)} AND trace_id = {trace:String}
    AND ts >= {since:DateTime64(6, 'UTC')}
"""


@dataclass(frozen=True)
class _Session:
    session_id: str


def is_being_deleted(project_id: UUID, trace_id: str) -> bool:
    """Returns whether a session of the trace is being deleted, and with it the trace's spans that name none."""
    sessions = [*selectors.list_sessions_being_deleted(project_id)]
    if not sessions:
        return False
    params = {"project": project_id, "trace": trace_id, "sessions": sessions, "since": first_moment()}
    return bool(client.query(_HIDDEN, params, row=_Session, name="traces.hidden"))


def find_trace(project_id: UUID, trace_id: str) -> TraceSpans:
    """Returns the first 500 spans of a trace, which has none when it is unknown.

    The trace of a request that did not join one of its client has the request's id.
    """
    request_id = gateway_id(str(UUID(trace_id)))
    ts: datetime | None = get_request_time(project_id, request_id) if request_id else None
    own = request_at(project_id, ts, request_id) if ts and request_id else []
    return spans_of(project_id, [trace_id], [row for row in own if not row.trace_id])


def trace_sessions(project_id: UUID, trace_id: str) -> list[str]:
    """Returns the first 500 sessions that spans and logs of a trace name."""
    params = {"project": project_id, "trace": trace_id, "limit": _MAX_SESSIONS}
    return [row.session_id for row in visible.query(_SESSIONS, params, row=_Session, name="traces.sessions")]
