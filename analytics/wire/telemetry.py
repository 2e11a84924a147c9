"""The JSON of spans and logs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from analytics.telemetry import spelling
from analytics.telemetry.rows import LogRow, SpanRow


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
    return {
        "trace_id": _text(row.trace_id),
        "span_id": _text(row.span_id),
        "parent_span_id": _text(row.parent_span_id),
        "span_name": _text(row.span_name),
        "span_kind": _text(spelling.kind_as_today(row.span_kind)),
        "service_name": _text(row.service_name),
        "timestamp": _iso(row.time),
        "duration_ns": row.duration_ns,
        "status_code": _text(spelling.status_as_today(row.status_code)),
        "status_message": _text(row.status_message),
        "attributes": _texts(row.attributes),
    }


def log_entry(row: LogRow) -> LogRecord:
    return {
        "timestamp": _iso(row.time),
        "trace_id": _text(row.trace_id),
        "span_id": _text(row.span_id),
        "severity_text": _text(spelling.severity_name(row.severity_text, row.severity_number)),
        "service_name": _text(row.service_name),
        "body": _text(row.body),
        "attributes": _texts(row.attributes),
    }


def _texts(attributes: Mapping[str, str]) -> dict[str, str]:
    return {_text(name): _text(value) for name, value in attributes.items()}


def _text(value: str | bytes) -> str:
    """Returns the value as text. ClickHouse's driver returns bytes for a value of a collector that is not UTF-8."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _iso(time: str) -> str:
    """Returns a time of ClickHouse's in ISO 8601 with nine digits, in UTC."""
    return time.replace(" ", "T") + "Z"
