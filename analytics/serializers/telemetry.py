"""Spans and logs on the wire."""

from __future__ import annotations

from typing import Any

from analytics.queries.telemetry import LogRow, SpanRow
from analytics.telemetry import spelling


def span_entry(row: SpanRow) -> dict[str, Any]:
    return _entry(
        {
            "trace_id": row.trace_id,
            "span_id": row.span_id,
            "parent_span_id": row.parent_span_id,
            "span_name": row.span_name,
            "span_kind": spelling.kind_as_today(row.span_kind),
            "service_name": row.service_name,
            "timestamp": _iso(row.time),
            "duration_ns": row.duration_ns,
            "status_code": spelling.status_as_today(row.status_code),
            "status_message": row.status_message,
            "attributes": row.attributes,
        }
    )


def log_entry(row: LogRow) -> dict[str, Any]:
    return _entry(
        {
            "timestamp": _iso(row.time),
            "trace_id": row.trace_id,
            "span_id": row.span_id,
            "severity_text": spelling.severity_name(row.severity_text, row.severity_number),
            "service_name": row.service_name,
            "body": row.body,
            "attributes": row.attributes,
        }
    )


def _entry(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: _readable(value) for name, value in fields.items()}


def _readable(value: Any) -> Any:
    """What a collector wrote that is no text reaches us as bytes."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, dict):
        return {_readable(key): _readable(item) for key, item in value.items()}
    return value


def _iso(time: str) -> str:
    """ISO 8601 with nine digits, in UTC."""
    return time.replace(" ", "T") + "Z"
