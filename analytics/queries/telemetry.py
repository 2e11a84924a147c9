from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from analytics.queries import visible
from analytics.queries.request_spans import derived_spans, session_requests
from analytics.telemetry.rows import LogRow, SpanRow

MAX_RECORDS = 500

Row = TypeVar("Row", SpanRow, LogRow)

# A record that was sent again is stored twice until the store has merged its rows, which have the same RecordId.
_FIRST = "ORDER BY Timestamp, SpanId, RecordId LIMIT 1 BY Timestamp, SpanId, RecordId LIMIT {limit:UInt32}"
# The conditions name the table's own key, so that few granules are read, and before it the partition.
_KEY = "DropDate, toStartOfFiveMinutes(Timestamp), ServiceName, Timestamp, RecordId"


def keyed_by(keys: str, condition: str) -> str:
    return f"ProjectId = {{project:UUID}} AND ({_KEY}) IN (SELECT {_KEY} FROM {keys} WHERE {condition})"


def _keys(table: str, condition: str) -> str:
    return f"SELECT {_KEY} FROM {table} WHERE ProjectId = {{project:UUID}} AND {condition} {_FIRST}"


def _rows(columns: str, table: str, *keys: str) -> str:
    named = " UNION ALL ".join(f"({query})" for query in keys)
    return f"SELECT {columns} FROM {table} WHERE ProjectId = {{project:UUID}} AND ({_KEY}) IN ({named}) {_FIRST}"


_SPAN = """toString(Timestamp) AS time, TraceId AS trace_id, SpanId AS span_id, ParentSpanId AS parent_span_id,
    SpanName AS span_name, SpanKind AS span_kind, ServiceName AS service_name, Duration AS duration_ns,
    StatusCode AS status_code, StatusMessage AS status_message, SpanAttributes AS attributes"""
_LOG = """toString(Timestamp) AS time, TraceId AS trace_id, SpanId AS span_id, SeverityText AS severity_text,
    SeverityNumber AS severity_number, ServiceName AS service_name, Body AS body, LogAttributes AS attributes"""
_OF_SESSION, _OF_TRACES = "SessionId = {session:String}", "TraceId IN {traces:Array(String)}"

_SESSION_SPANS = _rows(_SPAN, "otel_traces", _keys("otel_session_spans", _OF_SESSION))
_SESSION_LOGS = _rows(_LOG, "otel_logs", _keys("otel_session_logs", _OF_SESSION))
_TRACE_SPANS = _rows(_SPAN, "otel_traces", _keys("otel_trace_spans", _OF_TRACES))
_TRACE_LOGS = _rows(_LOG, "otel_logs", _keys("otel_trace_logs", _OF_TRACES))
_TIMELINE_LOGS = _rows(_LOG, "otel_logs", _keys("otel_session_logs", _OF_SESSION), _keys("otel_trace_logs", _OF_TRACES))


def session_spans(project_id: UUID, session_id: str) -> list[SpanRow]:
    """The first 500 spans that name the session: the applications', and the gateway's own."""
    stored, requests = visible.both_visible(
        project_id,
        partial(_ask, _SESSION_SPANS, project_id, {"session": session_id}, SpanRow, "telemetry.spans"),
        partial(session_requests, project_id, session_id, MAX_RECORDS),
    )
    return first_spans(stored, derived_spans(requests))


def trace_spans(project_id: UUID, trace_ids: Sequence[str]) -> list[SpanRow]:
    """The first 500 stored spans of these traces; the gateway's own are not stored."""
    return _ask(_TRACE_SPANS, project_id, {"traces": trace_ids}, SpanRow, "telemetry.trace_spans") if trace_ids else []


def first_spans(stored: Sequence[SpanRow], derived: Sequence[SpanRow]) -> list[SpanRow]:
    # A release that is rolled back stores the spans of a batch that this one has begun to ship.
    known = {_place(row) for row in stored}
    return sorted([*stored, *(row for row in derived if _place(row) not in known)], key=_place)[:MAX_RECORDS]


def _place(row: SpanRow) -> tuple[str, str]:
    return row.time, row.span_id


def session_logs(project_id: UUID, session_id: str) -> list[LogRow]:
    """The first 500."""
    return _ask(_SESSION_LOGS, project_id, {"session": session_id}, LogRow, "telemetry.logs")


def trace_logs(project_id: UUID, trace_ids: Sequence[str]) -> list[LogRow]:
    """The first 500."""
    return _ask(_TRACE_LOGS, project_id, {"traces": trace_ids}, LogRow, "telemetry.trace_logs")


def session_and_trace_logs(project_id: UUID, session_id: str, trace_ids: Sequence[str]) -> list[LogRow]:
    """The first 500."""
    named = {"session": session_id, "traces": trace_ids}
    return _ask(_TIMELINE_LOGS, project_id, named, LogRow, "telemetry.timeline_logs")


def _ask(sql: str, project_id: UUID, named: dict[str, Any], row: type[Row], name: str) -> list[Row]:
    params = {"project": project_id, "limit": MAX_RECORDS, **named}
    return visible.query(sql, params, row=row, name=name)
