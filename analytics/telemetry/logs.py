"""Makes a row of `otel_logs` from a log record."""

from __future__ import annotations

from typing import Any

from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, SeverityNumber

from analytics.telemetry.checks import optional_id, required_time, within_limits
from analytics.telemetry.origin import Origin
from analytics.telemetry.records import Form
from analytics.telemetry.sessions import other_session_ids
from analytics.telemetry.values import attributes, text

TABLE = "otel_logs"
FORM = Form(
    LogRecord,
    "resourceLogs",
    "scopeLogs",
    "logRecords",
    ids=("traceId", "spanId"),
    enums={("severityNumber",): frozenset(SeverityNumber.keys())},
)

# These columns follow the store's own, which `storage` names.
COLUMNS = (
    "RecordId", "OtherSessionIds", "Timestamp", "TraceId", "SpanId", "TraceFlags", "SeverityText", "SeverityNumber",
    "ServiceName", "Body", "ResourceSchemaUrl", "ResourceAttributes", "ScopeSchemaUrl", "ScopeName", "ScopeVersion",
    "ScopeAttributes", "LogAttributes", "EventName",
)  # fmt: skip


def log_row(origin: Origin, log: LogRecord) -> tuple[Any, ...]:
    """Returns the values of a log record in the order of COLUMNS. Raises RejectedRecord for an id of another length and
    for an invalid time."""
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
