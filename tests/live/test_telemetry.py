from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests
from openai import InternalServerError, OpenAI
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.propagate import inject
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Tracer

from tests.live.service import LiveService
from tests.services import START_SECONDS
from tests.waiting import wait_until

Spans = list[dict[str, Any]]


@pytest.fixture
def tracer(live_service: LiveService) -> Iterator[Tracer]:
    exporter = OTLPSpanExporter(
        endpoint=f"{live_service.base_url}/api/otlp/v1/traces",
        headers={"Authorization": f"Bearer {live_service.api_key}"},
        compression=Compression.Gzip,
    )
    provider = TracerProvider(resource=Resource.create({"service.name": "shop"}))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    yield provider.get_tracer("app")
    provider.shutdown()


def spans_of(service: LiveService, session: str) -> Spans:
    answer = requests.get(
        f"{service.base_url}/api/projects/{service.project_id}/llm/sessions/{session}/telemetry",
        headers={"Authorization": f"Bearer {service.api_key}", "X-Project-Id": service.project_id},
        timeout=30,
    )
    assert answer.status_code == 200, answer.text
    spans: Spans = answer.json()["spans"]
    return spans


def wait_for_spans(service: LiveService, session: str, number: int) -> Spans:
    def enough() -> Spans | None:
        spans = spans_of(service, session)
        return spans if len(spans) >= number else None

    # An earlier test may have just killed the shipper.
    return wait_until(enough, seconds=START_SECONDS, what=f"{number} spans of {session}")


def ask(client: OpenAI, session: str, model: str = "sandbox/echo") -> None:
    headers = {"x-svc-session-id": session}
    inject(headers)
    client.chat.completions.create(
        model=model, messages=[{"role": "user", "content": "a secret"}], extra_headers=headers
    )


def test_session__application_and_gateway__one_trace_in_order(live_service: LiveService, tracer: Tracer) -> None:
    client = live_service.openai(max_retries=0)

    with tracer.start_as_current_span("turn", attributes={"gen_ai.session_id": "told/1"}):
        ask(client, "told/1")
        with pytest.raises(InternalServerError):
            ask(client, "told/1", "sandbox/error-503")

    spans = wait_for_spans(live_service, "told/1", 6)
    turn, answered, call, failed, *tries = spans
    assert len({span["trace_id"] for span in spans}) == 1
    assert (turn["span_name"], turn["service_name"], turn["parent_span_id"]) == ("turn", "shop", "")
    assert [answered["parent_span_id"], failed["parent_span_id"]] == [turn["span_id"]] * 2
    assert {span["parent_span_id"] for span in tries} == {failed["span_id"]}
    assert (answered["span_kind"], answered["status_code"]) == ("Server", "Unset")
    assert (call["parent_span_id"], call["span_name"]) == (answered["span_id"], "chat echo")
    assert call["attributes"]["gen_ai.provider.name"] == "sandbox"
    assert (failed["status_code"], {span["status_code"] for span in tries}) == ("Error", {"Error"})
    assert "secret" not in str(spans)


def test_spans__shipper_killed_again_and_again__one_of_each(live_service: LiveService) -> None:
    client = live_service.openai(max_retries=0)

    for _ in range(3):
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: ask(client, "killed"), range(20)))
        live_service.wait_for_successor("shipper", live_service.kill("shipper"))

    spans = wait_for_spans(live_service, "killed", 120)
    assert len(spans) == 120
    assert len({span["span_id"] for span in spans}) == 120
