from __future__ import annotations

from typing import TypedDict, TypeVar, cast

from analytics.telemetry import spelling
from analytics.telemetry.rows import LogRow, SpanRow
from core.wire.shown import shown_as

Value = TypeVar("Value")


class Span(TypedDict):
    trace_id: str
    span_id: str
    parent_span_id: str
    span_name: str
    span_kind: str
    service_name: str
    timestamp: str
    duration_ns: int
    status_code: str
    status_message: str | None
    attributes: dict[str, str] | None


class LogRecord(TypedDict):
    timestamp: str
    trace_id: str
    span_id: str
    severity_text: str
    service_name: str
    body: str | None
    attributes: dict[str, str] | None


class SessionTelemetry(TypedDict):
    spans: list[Span]
    logs: list[LogRecord]


def span_entry(row: SpanRow) -> Span:
    kind, status = spelling.kind_as_today(row.span_kind), spelling.status_as_today(row.status_code)
    given = {"span_kind": kind, "status_code": status, "status_message": row.status_message}
    return _readable(shown_as(Span, row, timestamp=_iso(row.time), **given))


def log_entry(row: LogRow) -> LogRecord:
    severity = spelling.severity_name(row.severity_text, row.severity_number)
    return _readable(shown_as(LogRecord, row, timestamp=_iso(row.time), severity_text=severity, body=row.body))


def _readable(value: Value) -> Value:
    """ClickHouse's driver returns bytes where a collector's value is not UTF-8; makes all of them text."""
    if isinstance(value, dict):
        return cast(Value, {_readable(name): _readable(one) for name, one in value.items()})
    return cast(Value, value.decode("utf-8", "replace")) if isinstance(value, bytes) else value


def _iso(time: str) -> str:
    return time.replace(" ", "T") + "Z"
