"""Lists the spans and logs of a session in the order of their times."""

from __future__ import annotations

from typing import TypeVar
from uuid import UUID

from analytics.queries import visible
from analytics.queries.request_spans import derived_spans
from analytics.telemetry.rows import LogRow, SpanRow

MAX_RECORDS = 500

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
    """Returns the first 500 spans of the session: those that applications sent, and the gateway's own."""
    stored = _ask(_SPANS, project_id, session_id, SpanRow, "telemetry.spans")
    derived = derived_spans(project_id, session_id, MAX_RECORDS)
    # A release that is rolled back stores the spans of a batch that this one has begun to ship.
    known = {_key(row) for row in stored}
    return sorted([*stored, *(row for row in derived if _key(row) not in known)], key=_key)[:MAX_RECORDS]


def _key(row: SpanRow) -> tuple[str, str]:
    return row.time, row.span_id


def session_logs(project_id: UUID, session_id: str) -> list[LogRow]:
    """Returns the first 500 log records of the session."""
    return _ask(_LOGS, project_id, session_id, LogRow, "telemetry.logs")


def _ask(sql: str, project_id: UUID, session_id: str, row: type[Row], name: str) -> list[Row]:
    params = {"project": project_id, "session": session_id, "limit": MAX_RECORDS}
    return visible.query(sql, params, row=row, name=name)
