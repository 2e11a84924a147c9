"""The spans that leave, as OpenTelemetry's own messages read them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from pytest_django import Settings

from analytics.request_log.record import AttemptRecord, Outcome, SpoolEntry
from analytics.shipper.loop import Shipper
from analytics.spool.handover import handed, want
from analytics.spool.writer import SpoolWriter
from analytics.telemetry.request_spans import request_spans
from analytics.trace_export.batches import MAX_SPANS, Selection, make_batches, read_records
from analytics.trace_export.messages import MAX_CHARACTERS, MAX_PART_CHARACTERS, message_attributes
from tests.factories.analytics import make_entry
from tests.fakes.collector import Collector

PROJECT = str(uuid4())
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
CALL = AttemptRecord(
    provider="google", model="gemini-2.5-pro", status=200, latency_ms=200, prompt_tokens=12, completion_tokens=5,
    cost_usd="0.0123", offset_us=30_000,
)  # fmt: skip


def batches_of(
    spool: Path, *entries: SpoolEntry, ratio: float = 1.0, content: bool = False
) -> list[ExportTraceServiceRequest]:
    """Returns what leaves for these records, on their whole way through the spool and the shipper."""
    want(spool, {PROJECT: content})
    writer = SpoolWriter(spool)
    for entry in entries:
        writer.append(entry)
    writer.close()
    shipper = Shipper(spool, insert=lambda rows, token: None)
    shipper.drain()
    shipper.close()
    made = [
        body
        for path in handed(spool)
        for body, _ in make_batches(PROJECT, read_records(path)[PROJECT], Selection(ratio, include_content=content))
    ]
    return [ExportTraceServiceRequest.FromString(gzip.decompress(body)) for body in made]


def spans_in(requests: list[ExportTraceServiceRequest]) -> list[Span]:
    return [span for one in requests for span in one.resource_spans[0].scope_spans[0].spans]


def plain(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    return [plain(one) for one in value.array_value.values] if kind == "array_value" else getattr(value, str(kind))


def attributes(span: Span) -> dict[str, Any]:
    return {one.key: plain(one.value) for one in span.attributes}


def test_spans__request_and_call__joined_to_the_clients_trace_with_typed_attributes(
    spool: Path, settings: Settings
) -> None:
    settings.HOST_NAME = "gateway-a"
    entry = make_entry(
        project_id=PROJECT, ts=1_795_258_025_000_007, latency_ms=251, ttft_ms=130, is_stream=True, session_id="s",
        user_id="u", model="gemini-2.5-pro", finish_reason="stop", trace_id=TRACE, parent_span_id=PARENT,
        attempts=(CALL,), reasoning_tokens=3,
    )  # fmt: skip

    [request] = batches_of(spool, entry)

    server, call = spans_in([request])
    [group] = request.resource_spans
    assert {one.key: one.value.string_value for one in group.resource.attributes} == {
        "service.name": "prompt-gateway",
        "service.version": settings.SPECTACULAR_SETTINGS["VERSION"],
        "host.name": "gateway-a",
        "prompt_gateway.project_id": PROJECT,
    }
    assert (server.trace_id.hex(), server.parent_span_id.hex()) == (TRACE, PARENT)
    assert (call.trace_id, call.parent_span_id) == (server.trace_id, server.span_id)
    assert (server.kind, call.kind) == (Span.SPAN_KIND_SERVER, Span.SPAN_KIND_CLIENT)
    assert server.start_time_unix_nano == 1_795_258_025_000_007_000
    assert server.end_time_unix_nano - server.start_time_unix_nano == 251_000_000
    assert attributes(server)["http.response.status_code"] == 200
    assert attributes(server)["session.id"] == "s"
    found = attributes(call)
    assert found["gen_ai.provider.name"] == "gcp.gemini"
    assert (found["gen_ai.usage.input_tokens"], found["gen_ai.usage.output_tokens"]) == (12, 5)
    assert found["gen_ai.usage.reasoning.output_tokens"] == 3
    assert found["gen_ai.response.finish_reasons"] == ["stop"]
    assert found["gen_ai.request.stream"] is True
    assert found["gen_ai.response.time_to_first_chunk"] == pytest.approx(0.1)
    assert found["gen_ai.conversation.id"] == "s"
    assert found["prompt_gateway.cost_usd"] == pytest.approx(0.0123)
    assert server.status.code == Status.STATUS_CODE_UNSET


def test_spans__every_attribute_of_a_request__is_what_a_session_shows(spool: Path) -> None:
    entry = make_entry(
        project_id=PROJECT, status_code=503, outcome=Outcome.ERROR, error_code="provider_unavailable",
        attempts=(AttemptRecord(provider="openai", model="gpt-4o", status=500, error="server_error"), CALL),
    )  # fmt: skip

    spans = spans_in(batches_of(spool, entry))

    rows = request_spans(entry.record)
    assert [span.span_id.hex() for span in spans] == [row.span_id for row in rows]
    assert [set(attributes(span)) for span in spans] == [set(row.attributes) for row in rows]
    assert [span.status.code == Status.STATUS_CODE_ERROR for span in spans] == [True, True, False]
    assert spans[0].status.message == "provider_unavailable"
    assert spans[0].trace_id.hex() == entry.record.request_id.replace("-", "")


def test_sampling__share_of_traces__whole_traces_and_the_same_at_each_try(spool: Path) -> None:
    entries = [make_entry(project_id=PROJECT, attempts=(CALL,)) for _ in range(400)]
    half = spans_in(batches_of(spool, *entries, ratio=0.5))
    quarter = {span.trace_id for span in spans_in(batches_of(spool, ratio=0.25))}

    traces = {span.trace_id for span in half}
    assert len(half) == 2 * len(traces)
    # The chance of a share beyond these is below one in a billion.
    assert 130 < len(traces) < 270
    assert quarter < traces


def test_batches__many_spans__bounded(spool: Path) -> None:
    requests = batches_of(spool, *[make_entry(project_id=PROJECT) for _ in range(MAX_SPANS + 1)])
    assert [len(spans_in([one])) for one in requests] == [MAX_SPANS, 1]


BODY = {
    "model": "gpt-4o",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "What is this?"},
                                     {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]},
        {"role": "assistant", "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"x": 1}'}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "a cat"},
    ],
}  # fmt: skip
ANSWER = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "A cat."}, "finish_reason": "stop"}]}


def test_content__included__messages_by_the_conventions_on_the_call_that_answered(spool: Path) -> None:
    entry = make_entry(
        json.dumps(BODY).encode(), json.dumps(ANSWER).encode(), project_id=PROJECT, attempts=(CALL,),
        finish_reason="stop",
    )  # fmt: skip

    server, call = spans_in(batches_of(spool, entry, content=True))

    found = attributes(call)
    assert json.loads(found["gen_ai.input.messages"]) == [
        {"role": "system", "parts": [{"type": "text", "content": "Be brief."}]},
        {"role": "user", "parts": [{"type": "text", "content": "What is this?"},
                                   {"type": "text", "content": "[image/png]"}]},
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "look", "arguments": {"x": 1}}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "a cat"}]},
    ]  # fmt: skip
    assert json.loads(found["gen_ai.output.messages"]) == [
        {"role": "assistant", "parts": [{"type": "text", "content": "A cat."}], "finish_reason": "stop"}
    ]
    assert "gen_ai.input.messages" not in attributes(server)


def test_content__of_a_stream__put_together(spool: Path) -> None:
    events = [{"choices": [{"index": 0, "delta": {"role": "assistant", "content": text}}]} for text in ("A ", "cat.")]
    stream = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events) + b"data: [DONE]\n\n"
    entry = make_entry(json.dumps(BODY).encode(), stream, project_id=PROJECT, attempts=(CALL,), is_stream=True)

    _, call = spans_in(batches_of(spool, entry, content=True))

    [message] = json.loads(attributes(call)["gen_ai.output.messages"])
    assert message["parts"] == [{"type": "text", "content": "A cat."}]


def test_content__not_included__no_message_leaves(spool: Path) -> None:
    entry = make_entry(json.dumps(BODY).encode(), json.dumps(ANSWER).encode(), project_id=PROJECT, attempts=(CALL,))
    [request] = batches_of(spool, entry)
    assert b"cat" not in request.SerializeToString()


@pytest.mark.parametrize("body", [b"", b"no JSON \xff", b"[" * 5000, b'{"messages": 5}', b"null"])
def test_content__odd_bodies__the_spans_leave_all_the_same(spool: Path, body: bytes) -> None:
    entry = make_entry(body, body, project_id=PROJECT, attempts=(CALL,), is_native=True, operation="messages")
    assert len(spans_in(batches_of(spool, entry, content=True))) == 2


def test_content__long_conversation__latest_messages_and_cut_texts() -> None:
    messages = [{"role": "user", "content": f"{number} " + "x" * MAX_PART_CHARACTERS} for number in range(9)]
    found = message_attributes(json.dumps({"messages": messages}).encode(), b"", "")

    kept = json.loads(found["gen_ai.input.messages"])
    assert len(found["gen_ai.input.messages"]) <= MAX_CHARACTERS
    assert [message["parts"][0]["content"][0] for message in kept] == ["6", "7", "8"]
    assert len(kept[0]["parts"][0]["content"]) == MAX_PART_CHARACTERS + 1


def test_collector_of_the_tests__official_exporter__reads_what_it_sent(destination: Collector) -> None:
    exporter = OTLPSpanExporter(endpoint=f"{destination.url}/v1/traces")
    provider = TracerProvider(resource=Resource.create({"service.name": "official"}))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with provider.get_tracer("t").start_as_current_span("outer", attributes={"n": 5}) as span:
        context = span.get_span_context()
    provider.shutdown()

    [post] = destination.taken
    [found] = post.spans
    assert (found.trace_id.hex(), found.span_id.hex()) == (f"{context.trace_id:032x}", f"{context.span_id:016x}")
    assert (found.name, attributes(found), post.resource["service.name"]) == ("outer", {"n": 5}, "official")
