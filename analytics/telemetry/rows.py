from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SpanRow:
    """`time` is UTC as `2026-11-21 19:22:38.123456789`; Python's own times end at microseconds."""

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
    time: str
    trace_id: str
    span_id: str
    severity_text: str
    severity_number: int
    service_name: str
    body: str
    attributes: dict[str, str]
