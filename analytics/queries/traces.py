"""Finds the traces of a session, and all spans and requests of traces.

A trace belongs to a session when one of its spans names the session, an application's or the gateway's own.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from analytics.queries import visible
from analytics.queries.request_spans import (
    TracedRequest,
    derived_spans,
    first_moment,
    session_requests,
    trace_requests,
)
from analytics.queries.telemetry import MAX_RECORDS, first_spans, session_and_trace_logs, trace_spans
from analytics.telemetry.request_spans import REQUEST_ID
from analytics.telemetry.rows import LogRow, SpanRow

MAX_TRACES = 500

_HOUR = timedelta(hours=1)
_SESSION_TRACES = """
SELECT t.TraceId AS trace_id FROM otel_session_traces AS t
WHERE t.ProjectId = {project:UUID} AND t.SessionId = {session:String}
GROUP BY trace_id ORDER BY min(t.Timestamp), trace_id LIMIT {limit:UInt32}
"""


@dataclass(frozen=True)
class _Trace:
    trace_id: str


@dataclass(frozen=True)
class TraceSpans:
    """The first spans of traces in the order of their times, and the requests that the gateway's own are made of."""

    spans: list[SpanRow]
    requests: list[TracedRequest]

    def shown_requests(self, *, beside: Container[UUID] = ()) -> list[tuple[datetime, UUID]]:
        """Returns the times and ids of the requests that have a span here, without those `beside`."""
        shown = {row.attributes.get(REQUEST_ID) for row in self.spans}
        return [
            (row.ts, row.request_id)
            for row in self.requests
            if str(row.request_id) in shown and row.request_id not in beside
        ]


def session_trace_spans(project_id: UUID, session_id: str) -> TraceSpans:
    """Returns the first 500 spans of the session's requests, and of the traces that belong to the session."""
    own = session_requests(project_id, session_id, MAX_RECORDS)
    return spans_of(project_id, _traces(project_id, session_id, own), own)


def session_trace_logs(project_id: UUID, session_id: str) -> list[LogRow]:
    """Returns the first 500 log records that name the session, or that belong to one of its traces."""
    own = session_requests(project_id, session_id, MAX_RECORDS)
    return session_and_trace_logs(project_id, session_id, _traces(project_id, session_id, own))


def spans_of(project_id: UUID, trace_ids: Sequence[str], requests: Sequence[TracedRequest]) -> TraceSpans:
    """Returns the first 500 spans of the traces and of the requests, which may be in other traces too."""
    stored = trace_spans(project_id, trace_ids)
    hours = _hours(stored, requests)
    found = {row.request_id: row for row in (*requests, *trace_requests(project_id, trace_ids, hours, MAX_RECORDS))}
    return TraceSpans(first_spans(stored, derived_spans([*found.values()])), [*found.values()])


def _traces(project_id: UUID, session_id: str, requests: Iterable[TracedRequest]) -> list[str]:
    params = {"project": project_id, "session": session_id, "limit": MAX_TRACES}
    named = visible.query(_SESSION_TRACES, params, row=_Trace, name="telemetry.session_traces")
    joined = [row.trace_id for row in requests if row.trace_id]
    return list(dict.fromkeys([*(row.trace_id for row in named), *joined]))


def _hours(spans: Sequence[SpanRow], requests: Iterable[TracedRequest]) -> list[datetime]:
    """Returns the hours in which these spans and requests were under way, with one before and one after, because clocks
    differ and a span may be on its way."""
    earliest, latest = first_moment(), datetime.now(UTC) + _HOUR
    hours: set[datetime] = set()
    for begin, end in (*map(_extent, spans), *((row.ts, row.ts) for row in requests)):
        hour = max(begin - _HOUR, earliest).replace(minute=0, second=0, microsecond=0)
        while hour <= min(end + _HOUR, latest):
            hours.add(hour)
            hour += _HOUR
    return sorted(hours)


def _extent(span: SpanRow) -> tuple[datetime, datetime]:
    begin = datetime.fromisoformat(span.time[:26]).replace(tzinfo=UTC)
    # The end of a span is the application's own figure, which may lie beyond any date.
    lasted = min(span.duration_ns // 1000, int(timedelta(days=400) / timedelta.resolution))
    return begin, begin + timedelta(microseconds=lasted)
