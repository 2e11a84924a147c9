"""Builds exports for tests and sends them."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.test import Client
from google.protobuf.message import Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span
from rest_framework.test import APIClient

from analytics.clickhouse import client

PROTOBUF, JSON = "application/x-protobuf", "application/json"
START = 1_795_258_025_924_675_526
SESSION = "s-1"


class Sender:
    """An application with a key, which posts as its exporter does."""

    def __init__(self, key: str) -> None:
        self._client = Client()
        self.key = key

    def post(self, path: str, content: bytes, content_type: str = PROTOBUF, **headers: str) -> HttpResponse:
        sent = {
            "Authorization": f"Bearer {self.key}",
            **{name.replace("_", "-"): text for name, text in headers.items()},
        }
        return self._client.generic(  # type: ignore[return-value]  # Django's stubs have a class of their own for it
            "POST", f"/api/otlp/v1/{path}", content, content_type, headers=sent, CONTENT_TYPE=content_type
        )

    def traces(self, *spans: Span, **headers: str) -> HttpResponse:
        return self.post("traces", traces(*spans).SerializeToString(), **headers)

    def logs(self, *logs_: LogRecord, **headers: str) -> HttpResponse:
        return self.post("logs", logs(*logs_).SerializeToString(), **headers)

    def json(self, path: str, document: Any) -> HttpResponse:
        return self.post(path, json.dumps(document).encode(), JSON)


def pairs(values: dict[str, str]) -> list[KeyValue]:
    return [KeyValue(key=key, value=AnyValue(string_value=value)) for key, value in values.items()]


def span(number: int = 1, attributes: dict[str, str] | None = None, **values: Any) -> Span:
    defaults: dict[str, Any] = {
        "trace_id": b"\x01" * 16,
        "span_id": number.to_bytes(8, "big"),
        "name": f"span {number}",
        "kind": Span.SPAN_KIND_CLIENT,
        "start_time_unix_nano": START + number,
        "end_time_unix_nano": START + number + 1_000,
        "attributes": pairs({"gen_ai.session_id": SESSION} if attributes is None else attributes),
    }
    return Span(**{**defaults, **values})


def log(number: int = 1, attributes: dict[str, str] | None = None, **values: Any) -> LogRecord:
    defaults: dict[str, Any] = {
        "time_unix_nano": START + number,
        "severity_number": 9,
        "severity_text": "INFO",
        "body": AnyValue(string_value=f"line {number}"),
        "attributes": pairs({"gen_ai.session_id": SESSION} if attributes is None else attributes),
    }
    return LogRecord(**{**defaults, **values})


def traces(*spans: Span, service: str = "shop") -> ExportTraceServiceRequest:
    scoped = ScopeSpans(spans=spans)
    group = ResourceSpans(resource=Resource(attributes=pairs({"service.name": service})), scope_spans=[scoped])
    return ExportTraceServiceRequest(resource_spans=[group])


def logs(*records: LogRecord, service: str = "shop") -> ExportLogsServiceRequest:
    scoped = ScopeLogs(log_records=records)
    group = ResourceLogs(resource=Resource(attributes=pairs({"service.name": service})), scope_logs=[scoped])
    return ExportLogsServiceRequest(resource_logs=[group])


def decoded(answer: HttpResponse, message: type[Message]) -> Any:
    """Returns the decoded answer to a protobuf export."""
    assert answer.headers["Content-Type"] == PROTOBUF
    return message.FromString(answer.content)


def telemetry_of(api: APIClient, project_id: UUID, session: str = SESSION) -> tuple[list[Any], list[Any]]:
    """Returns the spans and logs of a session, as the endpoint gives them."""
    answer = api.get(f"/api/projects/{project_id}/llm/sessions/{session}/telemetry")
    assert answer.status_code == 200, answer.content
    assert set(answer.json()) == {"spans", "logs"}
    return answer.json()["spans"], answer.json()["logs"]


def rows(table: str) -> int:
    """Returns the number of rows of a table, equal ones merged."""
    [(count,)] = client.execute(f"SELECT count() FROM {table} FINAL")  # noqa: S608 - a name of the test
    return int(count)
