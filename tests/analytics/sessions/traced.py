"""A trace of an application that called the gateway, with the spans of both."""

from __future__ import annotations

from typing import Any

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from analytics.request_log.record import AttemptRecord, SpoolEntry
from core.models import Project
from tests.analytics.sessions.entries import entry
from tests.analytics.telemetry.sending import span

TRACE = "ab" * 16
SERVED = AttemptRecord("anthropic", "claude", 200, "", 200, 10, 5, "0.0031", offset_us=1_000)
# The names and depths of the spans of a request whose parent is the second of two nested spans.
WHOLE = [("span 1", 0), ("span 2", 1), ("POST /api/gateway/v1/chat/completions", 2), ("chat claude", 3)]


def call(project: Project, session: str, above: int, **values: Any) -> SpoolEntry:
    """A request that joined the trace below the span of that number."""
    traced = {"trace_id": TRACE, "parent_span_id": above.to_bytes(8, "big").hex(), "attempts": (SERVED,)}
    return entry(project, session, 5, **{**traced, **values})


def around(made: SpoolEntry, number: int, above: int = 0, **attributes: str) -> Span:
    """A span that began before the request and ended after it."""
    start = made.record.ts * 1000 - 1_000_000 + number
    return span(
        number,
        {name.replace("__", "."): value for name, value in attributes.items()},
        trace_id=bytes.fromhex(TRACE),
        parent_span_id=above.to_bytes(8, "big") if above else b"",
        start_time_unix_nano=start,
        end_time_unix_nano=start + 400_000_000,
    )
