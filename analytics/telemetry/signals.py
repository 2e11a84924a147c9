"""The three signals of OpenTelemetry: the form of their records, and the rows of the store that they become."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol

from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, SeverityNumber
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from analytics.telemetry import spelling
from analytics.telemetry.errors import RejectedRecord
from analytics.telemetry.origin import Origin
from analytics.telemetry.records import Form, Record
from analytics.telemetry.values import attributes, other_session_ids, text

# The SDKs keep at most 128 attributes, events and links each by default.
MAX_MEMBERS: Final = 4096


class _Sized(Protocol):
    def __len__(self) -> int: ...


def within_limits(*members: _Sized) -> None:
    if any(len(listed) > MAX_MEMBERS for listed in members):
        raise RejectedRecord(f"more than {MAX_MEMBERS} attributes, events or links")


def required_id(value: bytes, name: str, length: int) -> str:
    """The ids of a record in lower-case hexadecimal."""
    if len(value) != length:
        raise RejectedRecord(f"{name} must have {length} bytes")
    if not any(value):
        raise RejectedRecord(f"{name} is all zeros")
    return value.hex()


def optional_id(value: bytes, name: str, length: int) -> str:
    """Returns an id in hexadecimal, empty when there is none; some SDKs send zeros instead."""
    return required_id(value, name, length) if any(value) or len(value) not in (0, length) else ""


def required_time(nanoseconds: int, name: str) -> int:
    if not nanoseconds:
        raise RejectedRecord(f"{name} is missing")
    if nanoseconds > _LATEST:
        raise RejectedRecord(f"{name} is beyond the year 2262")
    return nanoseconds


_LOGS = Form(
    LogRecord,
    "resourceLogs",
    "scopeLogs",
    "logRecords",
    ids=("traceId", "spanId"),
    enums={("severityNumber",): frozenset(SeverityNumber.keys())},
)

# These columns follow the store's own, which `storage` names.
LOG_COLUMNS = (
    "RecordId", "OtherSessionIds", "Timestamp", "TraceId", "SpanId", "TraceFlags", "SeverityText", "SeverityNumber",
    "ServiceName", "Body", "ResourceSchemaUrl", "ResourceAttributes", "ScopeSchemaUrl", "ScopeName", "ScopeVersion",
    "ScopeAttributes", "LogAttributes", "EventName",
)  # fmt: skip


def log_row(origin: Origin, log: LogRecord) -> tuple[Any, ...]:
    """Returns a log record's LOG_COLUMNS. Raises RejectedRecord for an id of another length and an invalid time."""
    within_limits(log.attributes)
    # A record without the time of its event has the time at which it was observed.
    time = required_time(log.time_unix_nano or log.observed_time_unix_nano, "time_unix_nano")
    of_log = attributes(log.attributes)
    return (
        origin.record_id(log.SerializeToString(deterministic=True)),
        other_session_ids(of_log),
        time,
        optional_id(log.trace_id, "trace_id", 16),
        optional_id(log.span_id, "span_id", 8),
        log.flags & 0xFF,
        log.severity_text,
        min(max(log.severity_number, 0), 0xFF),
        origin.service_name,
        text(log.body),
        origin.resource_schema_url,
        origin.resource_attributes,
        origin.scope_schema_url,
        origin.scope_name,
        origin.scope_version,
        origin.scope_attributes,
        of_log,
        log.event_name,
    )


_SPANS = Form(
    Span,
    "resourceSpans",
    "scopeSpans",
    "spans",
    ids=("traceId", "spanId", "parentSpanId"),
    enums={("kind",): frozenset(Span.SpanKind.keys()), ("status", "code"): frozenset(Status.StatusCode.keys())},
)

# These columns follow the store's own, which `storage` names.
SPAN_COLUMNS = (
    "RecordId", "OtherSessionIds", "Timestamp", "TraceId", "SpanId", "ParentSpanId", "TraceState", "SpanName",
    "SpanKind", "ServiceName", "ResourceAttributes", "ScopeName", "ScopeVersion", "SpanAttributes", "Duration",
    "StatusCode", "StatusMessage", "Events.Timestamp", "Events.Name", "Events.Attributes", "Links.TraceId",
    "Links.SpanId", "Links.TraceState", "Links.Attributes",
)  # fmt: skip

# ClickHouse's DateTime64(9) ends in April 2262.
_LATEST = 2**63 - 1


def span_row(origin: Origin, span: Span) -> tuple[Any, ...]:
    """Returns a span's SPAN_COLUMNS. Raises RejectedRecord for an id of another length and an invalid time."""
    within_limits(span.attributes, span.events, span.links)
    trace_id, span_id = required_id(span.trace_id, "trace_id", 16), required_id(span.span_id, "span_id", 8)
    start = required_time(span.start_time_unix_nano, "start_time_unix_nano")
    of_span = attributes(span.attributes)
    return (
        origin.record_id(span.SerializeToString(deterministic=True)),
        other_session_ids(of_span),
        start,
        trace_id,
        span_id,
        optional_id(span.parent_span_id, "parent_span_id", 8),
        span.trace_state,
        span.name,
        spelling.kind(span.kind),
        origin.service_name,
        origin.resource_attributes,
        origin.scope_name,
        origin.scope_version,
        of_span,
        max(span.end_time_unix_nano - start, 0),
        spelling.status(span.status.code),
        span.status.message,
        *_events(span.events),
        *_links(span.links),
    )


def _events(events: Sequence[Span.Event]) -> tuple[list[Any], ...]:
    return (
        [min(event.time_unix_nano, _LATEST) for event in events],
        [event.name for event in events],
        [attributes(event.attributes) for event in events],
    )


def _links(links: Sequence[Span.Link]) -> tuple[list[Any], ...]:
    return (
        [link.trace_id.hex() for link in links],
        [link.span_id.hex() for link in links],
        [link.trace_state for link in links],
        [attributes(link.attributes) for link in links],
    )


_METRICS = Form(Metric, "resourceMetrics", "scopeMetrics", "metrics")


def _rejected(origin: Origin, metric: Metric) -> tuple[Any, ...]:
    raise RejectedRecord("metrics are not stored here")


def _number_of_data_points(metric: Metric) -> int:
    kind = metric.WhichOneof("data")
    return len(getattr(metric, kind).data_points) if kind else 0


@dataclass(frozen=True)
class Signal(Generic[Record]):
    """`name` is the last part of the path; `rejected` is the answer's field that counts rejected records."""

    name: str
    form: Form[Record]
    rejected: str
    table: str
    columns: tuple[str, ...]
    to_row: Callable[[Origin, Record], tuple[Any, ...]]
    weigh: Callable[[Record], int] = lambda record: 1


TRACES = Signal("traces", _SPANS, "rejectedSpans", "otel_traces", SPAN_COLUMNS, span_row)
LOGS = Signal("logs", _LOGS, "rejectedLogRecords", "otel_logs", LOG_COLUMNS, log_row)
METRICS = Signal("metrics", _METRICS, "rejectedDataPoints", "", (), _rejected, _number_of_data_points)
SIGNALS: tuple[Signal[Any], ...] = (TRACES, LOGS, METRICS)
