"""The official exporters, configured with an endpoint and a header only, send to a listening server."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from django.core.signals import request_finished, request_started
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.trace import SpanContext, SpanKind, StatusCode
from pytest_django.live_server_helper import LiveServer
from rest_framework.test import APIClient

from analytics.clickhouse import client
from core.models import Project
from tests.analytics.telemetry.sending import SESSION, Sender, telemetry_of
from tests.waiting import TIMEOUT_SECONDS

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("telemetry")]

RESOURCE = Resource.create({"service.name": "chat"})
COMPRESSIONS = pytest.mark.parametrize("compression", list(Compression), ids=lambda one: one.value)


@pytest.fixture(autouse=True)
def closed_connections() -> Iterator[None]:
    """The server has a thread for each connection, and each thread its own connection to the store."""

    def close(**_: object) -> None:
        client.close()

    request_finished.connect(close)
    yield
    request_finished.disconnect(close)


@pytest.fixture(autouse=True)
def exporter_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", str(TIMEOUT_SECONDS))


@COMPRESSIONS
def test_spans__of_the_python_sdk__come_back(
    live_server: LiveServer, sender: Sender, api: APIClient, project: Project, compression: Compression
) -> None:
    exporter = OTLPSpanExporter(
        endpoint=f"{live_server.url}/api/otlp/v1/traces",
        headers={"Authorization": f"Bearer {sender.key}"},
        compression=compression,
    )
    provider = TracerProvider(resource=RESOURCE)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    tracer = provider.get_tracer("app", "1.0")

    turn = tracer.start_as_current_span("turn", kind=SpanKind.SERVER, attributes={"gen_ai.session_id": SESSION})
    with turn, tracer.start_as_current_span("chat m", kind=SpanKind.CLIENT) as inner:
        inner.set_attributes({"llm.session_id": SESSION, "tokens": 12, "stop": ["a", "b"], "exact": True})
        inner.add_event("first token", {"after": 0.2})
        inner.set_status(StatusCode.ERROR, "cut")
    assert provider.force_flush()
    provider.shutdown()

    spans, _ = telemetry_of(api, project.pk)
    outer, nested = spans
    assert (outer["span_name"], outer["span_kind"], outer["service_name"]) == ("turn", "Server", "chat")
    assert (nested["parent_span_id"], nested["trace_id"]) == (outer["span_id"], outer["trace_id"])
    assert (nested["status_code"], nested["status_message"]) == ("Error", "cut")
    assert nested["attributes"] == {"llm.session_id": SESSION, "tokens": "12", "stop": '["a","b"]', "exact": "true"}
    assert outer["duration_ns"] >= nested["duration_ns"] > 0


@COMPRESSIONS
def test_logs__of_the_python_sdk__come_back(
    live_server: LiveServer, sender: Sender, api: APIClient, project: Project, compression: Compression
) -> None:
    exporter = OTLPLogExporter(
        endpoint=f"{live_server.url}/api/otlp/v1/logs",
        headers={"Authorization": f"Bearer {sender.key}"},
        compression=compression,
    )
    provider = LoggerProvider(resource=RESOURCE)
    provider.add_log_record_processor(BatchLogRecordProcessor(exporter))
    logger = provider.get_logger("app")
    now = time.time_ns()

    for number in range(3):
        logger.emit(
            LogRecord(
                timestamp=now + number,
                severity_text="WARN",
                severity_number=SeverityNumber.WARN,
                body={"line": number, "list": ["ü"]},
                attributes={"gen_ai.session_id": SESSION},
            )
        )
    assert provider.force_flush()
    provider.shutdown()

    _, logs = telemetry_of(api, project.pk)
    assert [line["body"] for line in logs] == [f'{{"line":{number},"list":["ü"]}}' for number in range(3)]
    assert {(line["severity_text"], line["service_name"]) for line in logs} == {("WARN", "chat")}


@pytest.fixture
def posted() -> Iterator[list[str]]:
    """Records the paths of the requests that the server took."""
    paths: list[str] = []

    def note(environ: dict[str, str], **_: object) -> None:
        paths.append(environ["PATH_INFO"])

    request_started.connect(note)
    yield paths
    request_started.disconnect(note)


def test_exporter__wrong_key__reported_and_not_sent_again(
    live_server: LiveServer, sender: Sender, caplog: pytest.LogCaptureFixture, posted: list[str]
) -> None:
    exporter = OTLPSpanExporter(
        endpoint=f"{live_server.url}/api/otlp/v1/traces", headers={"Authorization": "Bearer svc_wrong"}
    )
    provider = TracerProvider(resource=RESOURCE)
    with provider.get_tracer("app").start_as_current_span("turn") as span:
        pass

    result = exporter.export([span])  # type: ignore[list-item]  # the SDK's own span can be read, its interface cannot
    assert result is SpanExportResult.FAILURE
    assert posted == ["/api/otlp/v1/traces"]
    assert "401" in caplog.text


def test_exporter__one_span_that_cannot_be_stored__the_others_are_and_it_is_not_sent_again(
    live_server: LiveServer, sender: Sender, api: APIClient, project: Project, posted: list[str]
) -> None:
    exporter = OTLPSpanExporter(
        endpoint=f"{live_server.url}/api/otlp/v1/traces", headers={"Authorization": f"Bearer {sender.key}"}
    )
    now = time.time_ns()
    spans = [
        ReadableSpan(
            name,
            SpanContext(trace_id, number, is_remote=False),
            resource=RESOURCE,
            attributes={"gen_ai.session_id": SESSION},
            start_time=now,
            end_time=now + 1,
        )
        for number, (name, trace_id) in enumerate([("first", 1), ("without a trace", 0), ("last", 2)], start=1)
    ]

    assert exporter.export(spans) is SpanExportResult.SUCCESS
    assert posted == ["/api/otlp/v1/traces"]

    found, _ = telemetry_of(api, project.pk)
    assert sorted(item["span_name"] for item in found) == ["first", "last"]
