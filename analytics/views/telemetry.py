"""The spans and logs that belong to a session, whether or not it made any request."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from analytics.queries.telemetry import LogRow, SpanRow, session_logs, session_spans
from analytics.shapes import SessionTelemetry
from analytics.telemetry import spelling
from core.openapi import operation
from core.openapi.operations import path_parameter
from core.views import ProjectAPIView


class SessionTelemetryView(ProjectAPIView):
    @operation(
        "sessionTelemetry",
        "Spans and logs of a session",
        query=[path_parameter("project_id", UUID, "The project of the header.")],
        answer=SessionTelemetry,
        errors=[404],
    )
    def get(self, request: Request, project_id: UUID | str, session_id: str) -> Response:
        spans, logs = session_spans(self.project_id, session_id), session_logs(self.project_id, session_id)
        return Response(
            {"spans": [_readable(_span(row)) for row in spans], "logs": [_readable(_log(row)) for row in logs]}
        )


def _span(row: SpanRow) -> dict[str, Any]:
    return {
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


def _log(row: LogRow) -> dict[str, Any]:
    return {
        "timestamp": _iso(row.time),
        "trace_id": row.trace_id,
        "span_id": row.span_id,
        "severity_text": spelling.severity_name(row.severity_text, row.severity_number),
        "service_name": row.service_name,
        "body": row.body,
        "attributes": row.attributes,
    }


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
