"""Makes a row of `otel_traces` from a span."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from analytics.telemetry import spelling
from analytics.telemetry.checks import optional_id, required_id, required_time, within_limits
from analytics.telemetry.origin import Origin
from analytics.telemetry.records import Form
from analytics.telemetry.sessions import other_session_ids
from analytics.telemetry.values import attributes

TABLE = "otel_traces"
FORM = Form(
    Span,
    "resourceSpans",
    "scopeSpans",
    "spans",
    ids=("traceId", "spanId", "parentSpanId"),
    enums={("kind",): frozenset(Span.SpanKind.keys()), ("status", "code"): frozenset(Status.StatusCode.keys())},
)

# These columns follow the store's own, which `storage` names.
COLUMNS = (
    "RecordId", "OtherSessionIds", "Timestamp", "TraceId", "SpanId", "ParentSpanId", "TraceState", "SpanName",
    "SpanKind", "ServiceName", "ResourceAttributes", "ScopeName", "ScopeVersion", "SpanAttributes", "Duration",
    "StatusCode", "StatusMessage", "Events.Timestamp", "Events.Name", "Events.Attributes", "Links.TraceId",
    "Links.SpanId", "Links.TraceState", "Links.Attributes",
)  # fmt: skip

_LATEST = 2**63 - 1


def span_row(origin: Origin, span: Span) -> tuple[Any, ...]:
    """Returns the values of a span in the order of COLUMNS. Raises RejectedRecord for an id of another length and for
    an invalid time."""
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
