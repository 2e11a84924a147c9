from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from analytics.request_log.record import AttemptRecord, Operation, Outcome, RequestRecord
from analytics.telemetry.request_spans import request_spans
from tests.factories.analytics import make_record

Spans = list[dict[str, Any]]
ROUTE = "/api/gateway/v1/chat/completions"


def spans_of(record: RequestRecord) -> Spans:
    """Returns the spans by the names of the columns of `otel_traces`."""
    return [
        {
            "Timestamp": _nanoseconds(row.time), "TraceId": row.trace_id, "SpanId": row.span_id,
            "ParentSpanId": row.parent_span_id, "SpanName": row.span_name, "SpanKind": row.span_kind,
            "ServiceName": row.service_name, "Duration": row.duration_ns, "StatusCode": row.status_code,
            "StatusMessage": row.status_message, "SpanAttributes": row.attributes,
        }
        for row in request_spans(record)
    ]  # fmt: skip


def _nanoseconds(time: str) -> int:
    whole = datetime.fromisoformat(time[:19]).replace(tzinfo=UTC)
    return int(whole.timestamp()) * 1_000_000_000 + int(time[20:])


def call(**values: Any) -> AttemptRecord:
    return AttemptRecord(**{"provider": "openai", "model": "gpt-4o", "status": 200, "latency_ms": 200, **values})


def test_spans__one_call__request_and_call_with_their_conventions() -> None:
    attempt = call(prompt_tokens=12, completion_tokens=5, cost_usd="0.01", offset_us=30_000)
    record = make_record(
        ts=1_795_258_025_000_007, latency_ms=251, session_id="s", user_id="u", model="gpt-4o", finish_reason="stop",
        cache_read_tokens=3, cache_write_tokens=2, reasoning_tokens=1, attempts=(attempt,), prompt_name="support",
        prompt_config_id=str(uuid4()), prompt_version=4,
    )  # fmt: skip

    request, model_call = spans_of(record)

    assert request["Timestamp"] == 1_795_258_025_000_007_000
    assert (request["SpanName"], request["SpanKind"], request["Duration"]) == (f"POST {ROUTE}", "Server", 251_000_000)
    assert (request["StatusCode"], request["ServiceName"]) == ("Unset", "prompt-gateway")
    assert request["SpanAttributes"] == {
        "http.request.method": "POST",
        "http.route": ROUTE,
        "http.response.status_code": "200",
        "llm.session_id": "s",
        "session.id": "s",
        "user.id": "u",
        "prompt_gateway.request_id": record.request_id,
        "prompt_gateway.operation": "chat",
        "prompt_gateway.outcome": "success",
        "prompt_gateway.cache": "skip",
    }
    assert (model_call["SpanName"], model_call["SpanKind"]) == ("chat gpt-4o", "Client")
    assert model_call["Timestamp"] - request["Timestamp"] == 30_000_000
    assert (model_call["Duration"], model_call["StatusCode"]) == (200_000_000, "Unset")
    assert model_call["TraceId"] == request["TraceId"] == record.request_id.replace("-", "")
    assert (request["ParentSpanId"], model_call["ParentSpanId"]) == ("", request["SpanId"])
    assert model_call["SpanAttributes"] == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.response.model": "gpt-4o",
        "gen_ai.response.finish_reasons": '["stop"]',
        "gen_ai.session_id": "s",
        "gen_ai.conversation.id": "s",
        "gen_ai.prompt.name": "support",
        "gen_ai.prompt.version": "4",
        "gen_ai.usage.input_tokens": "12",
        "gen_ai.usage.output_tokens": "5",
        "gen_ai.usage.cache_read.input_tokens": "3",
        "gen_ai.usage.cache_write.input_tokens": "2",
        "gen_ai.usage.reasoning.output_tokens": "1",
        "http.response.status_code": "200",
        "prompt_gateway.request_id": record.request_id,
        "prompt_gateway.cost_usd": "0.01",
    }


@pytest.mark.parametrize(
    ("operation", "route", "name", "output_type"),
    [
        (Operation.CHAT, "chat/completions", "chat", None),
        (Operation.RESPONSES, "responses", "chat", None),
        (Operation.MESSAGES, "messages", "chat", None),
        (Operation.COUNT_TOKENS, "messages/count_tokens", "count_tokens", None),
        (Operation.EMBEDDINGS, "embeddings", "embeddings", None),
        (Operation.COMPLETIONS, "completions", "text_completion", None),
        (Operation.RERANK, "rerank", "rerank", None),
        (Operation.MODERATIONS, "moderations", "moderations", None),
        (Operation.TRANSCRIPTIONS, "audio/transcriptions", "transcriptions", "text"),
        (Operation.SPEECH, "audio/speech", "generate_content", "speech"),
        (Operation.IMAGES, "images/generations", "generate_content", "image"),
        ("of a later version", "of a later version", "of a later version", None),
    ],
)
def test_spans__operation__names_route_and_call_by_the_conventions(
    operation: str, route: str, name: str, output_type: str | None
) -> None:
    request, model_call = spans_of(make_record(operation=str(operation), model="m", attempts=(call(model="m"),)))

    assert request["SpanName"] == f"POST /api/gateway/v1/{route}"
    assert request["SpanAttributes"]["http.route"] == f"/api/gateway/v1/{route}"
    assert request["SpanAttributes"]["prompt_gateway.operation"] == operation
    assert model_call["SpanName"] == f"{name} m"
    assert model_call["SpanAttributes"]["gen_ai.operation.name"] == name
    assert model_call["SpanAttributes"].get("gen_ai.output.type") == output_type


def test_spans__retries_and_failover__a_span_for_each_call_of_a_provider() -> None:
    record = make_record(
        provider="bedrock", model="claude", latency_ms=900, attempts=(
            call(status=503, error="unavailable", latency_ms=100, offset_us=5_000),
            call(status=0, error="timeout", latency_ms=300, offset_us=150_000),
            call(provider="xai", status=0, error="circuit_open", latency_ms=0),
            call(provider="google", status=0, error="unsupported_parameter", latency_ms=0),
            call(provider="bedrock", model="claude", latency_ms=350, offset_us=500_000),
        ),
    )  # fmt: skip

    request, *calls = spans_of(record)

    attributes = [
        (
            one["SpanAttributes"]["gen_ai.provider.name"],
            one["SpanAttributes"].get("error.type"),
            one["StatusCode"],
            (one["Timestamp"] - request["Timestamp"]) // 1_000_000,
            one["Duration"] // 1_000_000,
            one["SpanAttributes"].get("gen_ai.response.model"),
        )
        for one in calls
    ]
    assert attributes == [
        ("openai", "unavailable", "Error", 5, 100, None),
        ("openai", "timeout", "Error", 150, 300, None),
        ("aws.bedrock", None, "Unset", 500, 350, "claude"),
    ]
    assert len({one["SpanId"] for one in (request, *calls)}) == 4


def test_spans__stream__call_lasts_to_its_end_and_tells_the_first_chunk() -> None:
    attempt = call(latency_ms=400, offset_us=100_000)
    record = make_record(is_stream=True, latency_ms=2_000, ttft_ms=510, attempts=(attempt,))

    _, model_call = spans_of(record)

    assert model_call["Duration"] == 1_900_000_000
    assert model_call["SpanAttributes"]["gen_ai.response.time_to_first_chunk"] == "0.41"
    assert model_call["SpanAttributes"]["gen_ai.request.stream"] == "true"


@pytest.mark.parametrize(
    ("status", "outcome", "expected"),
    [(500, Outcome.ERROR, "Error"), (404, Outcome.ERROR, "Unset"), (499, Outcome.CANCELLED, "Unset"),
     (500, Outcome.INTERRUPTED, "Error"), (503, Outcome.ERROR, "Error")],
)  # fmt: skip
def test_spans__failed_request__error_only_when_the_service_is_at_fault(
    status: int, outcome: Outcome, expected: str
) -> None:
    record = make_record(status_code=status, outcome=outcome, error_code="the_code", error_message="quotes a prompt")

    (request,) = spans_of(record)

    assert request["StatusCode"] == expected
    assert request["SpanAttributes"].get("error.type") == ("the_code" if expected == "Error" else None)
    assert "quotes" not in str(request)


def test_spans__client_left__no_error_of_the_provider() -> None:
    attempt = call(status=0, error="cancelled", latency_ms=70)
    record = make_record(status_code=499, outcome=Outcome.CANCELLED, latency_ms=80, attempts=(attempt,))

    _, model_call = spans_of(record)

    assert (model_call["StatusCode"], model_call["StatusMessage"]) == ("Unset", "cancelled")
    assert model_call["SpanAttributes"]["error.type"] == "cancelled"


def test_spans__traceparent__joined_to_the_clients_trace() -> None:
    record = make_record(trace_id="ab" * 16, parent_span_id="cd" * 8, attempts=(call(),))

    request, model_call = spans_of(record)

    assert {request["TraceId"], model_call["TraceId"]} == {"ab" * 16}
    assert request["ParentSpanId"] == "cd" * 8


def test_spans__gen_ai_attributes__on_calls_of_models_only() -> None:
    request, model_call = spans_of(make_record(session_id="s", prompt_version=3, prompt_name="p", attempts=(call(),)))

    assert not [name for name in request["SpanAttributes"] if name.startswith("gen_ai.")]
    assert model_call["SpanAttributes"]["gen_ai.prompt.version"] == "3"


def test_spans__prompt_skipped__no_prompt_named() -> None:
    _, model_call = spans_of(make_record(prompt_name="p", prompt_version=0, attempts=(call(),)))

    assert not [name for name in model_call["SpanAttributes"] if "prompt." in name]


def test_spans__same_record__same_rows() -> None:
    record = make_record(attempts=(call(), call(error="timeout")))

    assert request_spans(record) == request_spans(record)


@pytest.mark.parametrize(
    "odd",
    [{"ts": -5}, {"ts": 2**62}, {"latency_ms": -1}, {"latency_ms": 2**40}, {"session_id": "a\x00ü"}],
)
def test_spans__odd_figures__in_the_columns_ranges(odd: dict[str, Any]) -> None:
    for one in spans_of(make_record(attempts=(call(offset_us=-3, latency_ms=-4),), **odd)):
        assert 0 <= one["Timestamp"] < 2**63
        assert 0 <= one["Duration"] < 2**64
