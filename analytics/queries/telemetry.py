"""Lists the spans and logs of a session in the order of their times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from analytics.queries import visible

MAX_RECORDS = 500


@dataclass(frozen=True)
class SpanRow:
    """A span. `time` is UTC as `2026-11-21 19:22:38.123456789`; Python's own times end at microseconds."""

    time: str
    trace_id: str
    span_id: str
    parent_span_id: str
    span_name: str
    span_kind: str
    service_name: str
    duration_ns: int
    status_code: str
    status_message: str
    attributes: dict[str, str]


@dataclass(frozen=True)
class LogRow:
    """A log record; `time` has the form of a span's."""

    time: str
    trace_id: str
    span_id: str
    severity_text: str
    severity_number: int
    service_name: str
    body: str
    attributes: dict[str, str]


Row = TypeVar("Row", SpanRow, LogRow)

# A record that was sent again is stored twice until the store has merged its rows, which have the same RecordId.
_FIRST = "ORDER BY Timestamp, SpanId, RecordId LIMIT 1 BY Timestamp, SpanId, RecordId LIMIT {limit:UInt32}"
# The conditions name the table's own key, so that few granules are read, and before it the partition.
_KEY = "DropDate, toStartOfFiveMinutes(Timestamp), ServiceName, Timestamp, RecordId"


def _of_session(table: str, keys: str) -> str:
    return f"""
FROM {table} WHERE ProjectId = {{project:UUID}} AND ({_KEY}) IN (
    SELECT {_KEY} FROM {keys} WHERE ProjectId = {{project:UUID}} AND SessionId = {{session:String}} {_FIRST}
) {_FIRST}
"""


_SPANS = f"""
SELECT toString(Timestamp) AS time, TraceId AS trace_id, SpanId AS span_id, ParentSpanId AS parent_span_id,
    SpanName AS span_name, SpanKind AS span_kind, ServiceName AS service_name, Duration AS duration_ns,
    StatusCode AS status_code, StatusMessage AS status_message, SpanAttributes AS attributes
{_of_session("otel_traces", "otel_session_spans")}
"""
_LOGS = f"""
SELECT toString(Timestamp) AS time, TraceId AS trace_id, SpanId AS span_id, SeverityText AS severity_text,
    SeverityNumber AS severity_number, ServiceName AS service_name, Body AS body, LogAttributes AS attributes
{_of_session("otel_logs", "otel_session_logs")}
"""


def session_spans(project_id: UUID, session_id: str) -> list[SpanRow]:
    """Returns the first 500 spans of the session."""
    return _ask(_SPANS, project_id, session_id, SpanRow, "telemetry.spans")


def session_logs(project_id: UUID, session_id: str) -> list[LogRow]:
    """Returns the first 500 log records of the session."""
    return _ask(_LOGS, project_id, session_id, LogRow, "telemetry.logs")


def _ask(sql: str, project_id: UUID, session_id: str, row: type[Row], name: str) -> list[Row]:
    params = {"project": project_id, "session": session_id, "limit": MAX_RECORDS}
    return visible.query(sql, params, row=row, name=name)
