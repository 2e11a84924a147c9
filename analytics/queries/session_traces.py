"""Reads the spans and logs of a session with those of its traces.

A trace belongs to a session when one of its spans names the session, an application's or the gateway's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from analytics.queries import visible
from analytics.queries.request_spans import TracedRequest, session_requests
from analytics.queries.telemetry import MAX_RECORDS, session_and_trace_logs
from analytics.queries.traces import TraceSpans, spans_of
from analytics.telemetry.rows import LogRow

MAX_TRACES = 500

_SQL = """
SELECT t.TraceId AS trace_id FROM otel_session_traces AS t
WHERE t.ProjectId = {project:UUID} AND t.SessionId = {session:String}
GROUP BY trace_id ORDER BY min(t.Timestamp), trace_id LIMIT {limit:UInt32}
"""


@dataclass(frozen=True)
class _Trace:
    trace_id: str


def has_traces(project_id: UUID, session_id: str) -> bool:
    """Returns whether a span or log names the session."""
    params = {"project": project_id, "session": session_id, "limit": 1}
    return bool(visible.query(_SQL, params, row=_Trace, name="telemetry.has_traces"))


def session_trace_spans(project_id: UUID, session_id: str) -> TraceSpans:
    """Returns the first 500 spans of the session's requests and of its traces."""
    own = session_requests(project_id, session_id, MAX_RECORDS)
    traces = _traces(project_id, session_id, own)
    return spans_of(project_id, traces, own)


def session_trace_logs(project_id: UUID, session_id: str) -> list[LogRow]:
    """Returns the first 500 log records that name the session or belong to one of its traces."""
    own = session_requests(project_id, session_id, MAX_RECORDS)
    return session_and_trace_logs(project_id, session_id, _traces(project_id, session_id, own))


def _traces(project_id: UUID, session_id: str, requests: Iterable[TracedRequest]) -> list[str]:
    params = {"project": project_id, "session": session_id, "limit": MAX_TRACES}
    named = visible.query(_SQL, params, row=_Trace, name="telemetry.session_traces")
    joined = [row.trace_id for row in requests if row.trace_id]
    return list(dict.fromkeys([*(row.trace_id for row in named), *joined]))
