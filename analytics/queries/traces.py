"""Reads the spans of traces, and of sessions with their traces: those that applications sent, and the gateway's own.

A trace belongs to a session if one of its spans, the gateway's included, names the session.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from analytics.clickhouse import client
from analytics.identifiers import gateway_id
from analytics.queries import visible
from analytics.queries.request_spans import (
    TracedRequest,
    derived_spans,
    first_moment,
    request_at,
    session_requests,
    trace_requests,
)
from analytics.queries.requests import get_request_time
from analytics.queries.telemetry import MAX_RECORDS, first_spans, session_and_trace_logs, trace_spans
from analytics.scores import selectors
from analytics.telemetry.request_spans import REQUEST_ID
from analytics.telemetry.rows import LogRow, SpanRow

_HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class TraceSpans:
    """The first spans of traces, in the order of their times, and the requests that the gateway's own spans derive
    from."""

    spans: list[SpanRow]
    requests: list[TracedRequest]

    def shown_requests(self, *, beside: Container[UUID] = ()) -> list[TracedRequest]:
        shown = {row.attributes.get(REQUEST_ID) for row in self.spans}
        return [row for row in self.requests if str(row.request_id) in shown and row.request_id not in beside]


def spans_of(project_id: UUID, trace_ids: Sequence[str], requests: Sequence[TracedRequest]) -> TraceSpans:
    stored = trace_spans(project_id, trace_ids)
    # Without anything that has a time, the requests may be of any.
    hours = _hours(stored, requests) or _between(first_moment(), datetime.now(UTC))
    joined = trace_requests(project_id, trace_ids, hours, MAX_RECORDS)
    found = [*{row.request_id: row for row in (*requests, *joined)}.values()]
    return TraceSpans(first_spans(stored, derived_spans(found)), found)


def _hours(spans: Sequence[SpanRow], requests: Iterable[TracedRequest]) -> list[datetime]:
    """The hours of these spans and requests, with one before and one after: clocks differ, and a span may be
    delayed.
    """
    extents = (*map(_extent, spans), *((row.ts, row.ts) for row in requests))
    return sorted({hour for begin, end in extents for hour in _between(begin - _HOUR, end + _HOUR)})


def _between(begin: datetime, end: datetime) -> list[datetime]:
    first = max(begin, first_moment()).replace(minute=0, second=0, microsecond=0)
    last = min(end, datetime.now(UTC) + _HOUR)
    return [first + _HOUR * number for number in range((last - first) // _HOUR + 1)]


def _extent(span: SpanRow) -> tuple[datetime, datetime]:
    begin = datetime.fromisoformat(span.time[:26]).replace(tzinfo=UTC)
    # The end of a span is the application's own figure, which may lie beyond any date.
    lasted = min(span.duration_ns // 1000, timedelta(days=400) // timedelta.resolution)
    return begin, begin + timedelta(microseconds=lasted)


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


def is_being_deleted(project_id: UUID, trace_id: str) -> bool:
    sessions = [*selectors.list_sessions_being_deleted(project_id)]
    if not sessions:
        return False
    params = {"project": project_id, "trace": trace_id, "sessions": sessions, "since": first_moment()}
    return bool(client.query(_HIDDEN, params, row=str, name="traces.hidden"))


def find_trace(project_id: UUID, trace_id: str) -> TraceSpans:
    """The first 500 spans of a trace; none if it is unknown.

    A request that joined no trace of its client has a trace with the request's id.
    """
    request_id = gateway_id(str(UUID(trace_id)))
    ts: datetime | None = get_request_time(project_id, request_id) if request_id else None
    own = request_at(project_id, ts, request_id) if ts and request_id else []
    return spans_of(project_id, [trace_id], [row for row in own if not row.trace_id])


def trace_sessions(project_id: UUID, trace_id: str) -> list[str]:
    params = {"project": project_id, "trace": trace_id, "limit": _MAX_SESSIONS}
    return visible.query(_SESSIONS, params, row=str, name="traces.sessions")


MAX_TRACES = 500

_OF_SESSION = """
SELECT t.TraceId AS trace_id FROM otel_session_traces AS t
WHERE t.ProjectId = {project:UUID} AND t.SessionId = {session:String}
GROUP BY trace_id ORDER BY min(t.Timestamp), trace_id LIMIT {limit:UInt32}
"""


def has_traces(project_id: UUID, session_id: str) -> bool:
    """Returns whether a span or log names the session."""
    params = {"project": project_id, "session": session_id, "limit": 1}
    return bool(visible.query(_OF_SESSION, params, row=str, name="telemetry.has_traces"))


def session_trace_spans(
    project_id: UUID, session_id: str, between: tuple[datetime, datetime] | None = None
) -> TraceSpans:
    """Returns the first 500 spans of the session's requests and of its traces; with `between`, of the requests that
    arrived between these times, both included, and of their traces."""
    own = session_requests(project_id, session_id, MAX_RECORDS, between)
    if between is None:
        return spans_of(project_id, _traces(project_id, session_id, own), own)
    return spans_of(project_id, list(dict.fromkeys(row.trace_id for row in own if row.trace_id)), own)


def session_trace_logs(project_id: UUID, session_id: str) -> list[LogRow]:
    """Returns the first 500 log records that name the session or belong to one of its traces."""
    own = session_requests(project_id, session_id, MAX_RECORDS)
    return session_and_trace_logs(project_id, session_id, _traces(project_id, session_id, own))


def _traces(project_id: UUID, session_id: str, requests: Iterable[TracedRequest]) -> list[str]:
    params = {"project": project_id, "session": session_id, "limit": MAX_TRACES}
    named = visible.query(_OF_SESSION, params, row=str, name="telemetry.session_traces")
    joined = [row.trace_id for row in requests if row.trace_id]
    return list(dict.fromkeys([*named, *joined]))


# A request without a trace of the client's has its own id for that of its trace. Requests of releases that stored spans
# are found by those.
_CALLS = """
SELECT trace_id, 1000 * toUnixTimestamp64Micro(ts) AS started_ns FROM requests
WHERE project_id = {project:UUID} AND trace_id IN {traces:Array(String)} AND source = 'gateway'
    AND ts >= {since:DateTime64(6, 'UTC')}
UNION ALL
SELECT replaceAll(toString(request_id), '-', '') AS trace_id, 1000 * toUnixTimestamp64Micro(ts) AS started_ns
FROM requests AS r
WHERE project_id = {project:UUID} AND request_id IN {ids:Array(UUID)} AND r.trace_id = '' AND source = 'gateway'
    AND ts >= {since:DateTime64(6, 'UTC')}
UNION ALL
SELECT TraceId AS trace_id, toInt64(toUnixTimestamp64Nano(Timestamp)) AS started_ns
FROM otel_traces
WHERE ProjectId = {project:UUID} AND TraceId IN {traces:Array(String)}
    AND ScopeName = 'prompt_gateway' AND SpanKind = 'Server'
"""


@dataclass(frozen=True)
class GatewayCallRow:
    """A request of the gateway; `started_ns` is Unix time in nanoseconds."""

    trace_id: str
    started_ns: int


def gateway_calls(project_id: UUID, trace_ids: Collection[str]) -> list[GatewayCallRow]:
    """Returns the requests in these traces. Raises the errors of the store."""
    ids = (gateway_id(str(UUID(trace_id))) for trace_id in trace_ids)
    params = {
        "project": project_id,
        "traces": sorted(trace_ids),
        "ids": [one for one in ids if one is not None],
        "since": first_moment(),
    }
    return client.query(_CALLS, params, row=GatewayCallRow, name="telemetry.gateway_calls")
