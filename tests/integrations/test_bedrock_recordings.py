"""Tests every recorded exchange of Converse and ConverseStream against botocore's reading of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from botocore.eventstream import EventStreamBuffer
from botocore.session import Session
from botocore.validate import ParamValidator

from integrations.providers.base import ChatRequest
from integrations.providers.bedrock import ADAPTER
from integrations.providers.bedrock.request import build_body
from tests.integrations.bedrock_exchanges import KEYS, parsed_by_botocore
from tests.integrations.recorded_exchanges import (
    assert_retry_after,
    assert_same_however_cut,
    classified_failure,
    exchanges_of,
    replay,
)
from tests.integrations.reverse.bedrock import model_id, openai_fields
from tests.recordings import Recording, recordings_of

pytestmark = pytest.mark.recordings

EXCHANGES = exchanges_of(recordings_of("bedrock.converse", "bedrock.converse_stream"))
FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
}


def request_of(recording: Recording) -> ChatRequest:
    stream = recording.path.endswith("-stream")
    fields = openai_fields(recording.request, model=model_id(recording), stream=stream)
    body = json.dumps(fields, ensure_ascii=False).encode()
    return ChatRequest(model_id(recording), stream, body, fields)


@pytest.mark.parametrize("recording", EXCHANGES.all, ids=str)
def test_request__recorded__same_body_from_the_openai_form(recording: Recording) -> None:
    request = request_of(recording)
    upstream = ADAPTER.build_request(request, KEYS)
    assert without_defaults(json.loads(upstream.body)) == without_defaults(as_sent(recording.request))
    assert upstream.url.endswith(recording.path.replace("v1:0", "v1%3A0"))
    assert not upstream.warnings


@pytest.mark.parametrize("recording", EXCHANGES.all, ids=str)
def test_request__recorded__valid_by_botocores_service_model(recording: Recording) -> None:
    model = Session().get_service_model("bedrock-runtime")
    shape = model.operation_model("Converse").input_shape
    body, _ = build_body(request_of(recording))
    assert shape is not None
    report = ParamValidator().validate({"modelId": model_id(recording), **body}, shape)
    assert not report.has_errors(), report.generate_report()


def as_sent(recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the recorded body by the dialect's rules, with adjacent messages of one role merged."""
    body = json.loads(json.dumps(recorded))
    messages: list[dict[str, Any]] = []
    for message in body["messages"]:
        if messages and messages[-1]["role"] == message["role"]:
            messages[-1]["content"] += message["content"]
        else:
            messages.append(message)
    return {**body, "messages": messages}


def without_defaults(body: dict[str, Any]) -> dict[str, Any]:
    """Returns the body without values that have no effect: empty objects and `status: success`; a schema's text becomes
    its value."""
    body = {name: value for name, value in body.items() if value not in ({}, [])}
    for message in body["messages"]:
        for block in message["content"]:
            if block.get("toolResult", {}).get("status") == "success":
                del block["toolResult"]["status"]
    schema = body.get("outputConfig", {}).get("textFormat", {}).get("structure", {}).get("jsonSchema")
    if schema:
        schema["schema"] = json.loads(schema["schema"])
    return body


@pytest.mark.parametrize("recording", EXCHANGES.whole, ids=str)
def test_answer__recorded__as_botocore_reads_it(recording: Recording) -> None:
    answer = ADAPTER.parse_response(request_of(recording), recording.body)
    expected = parsed_by_botocore(recording.status, recording.headers, recording.body)
    (choice,) = json.loads(answer.body)["choices"]
    message, blocks = choice["message"], expected["output"]["message"]["content"]
    assert (message["content"] or "") == text_of(blocks)
    assert message.get("reasoning_content", "") == reasoning_of(blocks)
    assert calls_of(message) == [(use["toolUseId"], use["name"], use["input"]) for use in tool_uses(blocks)]
    assert signatures_of(message) == [
        block["reasoningContent"]["reasoningText"]["signature"]
        for block in blocks
        if "signature" in block.get("reasoningContent", {}).get("reasoningText", {})
    ]
    assert choice["finish_reason"] == answer.finish_reason == FINISH[expected["stopReason"]]
    assert_usage(answer.usage, expected["usage"])


@pytest.mark.parametrize("recording", EXCHANGES.streams, ids=str)
def test_stream__recorded__as_botocore_reads_it(recording: Recording) -> None:
    replayed = replay(ADAPTER.stream(request_of(recording)), [recording.body])
    events, error, stream = replayed.events, replayed.error, replayed.stream
    frames = frames_of(recording.body)
    chunks = [json.loads(event.data) for event in events]
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    native = [frame["delta"] for kind, frame in frames if kind == "contentBlockDelta"]
    assert error is None
    assert deltas[0] == {"role": "assistant", "content": ""}
    text = "".join(delta.get("text", "") for delta in native)
    assert "".join(delta.get("content", "") for delta in deltas) == text
    assert "".join(event.text for event in events) == text
    thoughts = [delta["reasoningContent"] for delta in native if "reasoningContent" in delta]
    reasoning = "".join(delta.get("reasoning_content", "") for delta in deltas)
    assert reasoning == "".join(thought.get("text", "") for thought in thoughts)
    details = [detail for delta in deltas for detail in delta.get("reasoning_details", ())]
    assert [detail["signature"] for detail in details if "signature" in detail] == [
        thought["signature"] for thought in thoughts if "signature" in thought
    ]
    assert sum("data" in detail for detail in details) == sum("redactedContent" in thought for thought in thoughts)
    assert [detail["index"] for detail in details] == list(range(len(details)))
    assert_calls(deltas, frames)
    citations = [delta["citation"]["location"]["web"]["url"] for delta in native if "citation" in delta]
    found = [note["url_citation"]["url"] for delta in deltas for note in delta.get("annotations", ())]
    assert found == citations
    (usage,) = [frame["usage"] for kind, frame in frames if kind == "metadata"]
    assert_usage(stream.usage, usage)
    assert [chunk for chunk in chunks if "usage" in chunk] == [chunks[-1]]
    (stop,) = [frame["stopReason"] for kind, frame in frames if kind == "messageStop"]
    assert chunks[-1]["choices"][0]["finish_reason"] == stream.finish_reason == FINISH[stop]


def assert_calls(deltas: list[dict[str, Any]], frames: list[tuple[str, dict[str, Any]]]) -> None:
    """Asserts the calls of the client's own tools; those of the vendor's tools do not reach the client."""
    expected: dict[int, list[str]] = {}
    for kind, frame in frames:
        use = frame.get("start", {}).get("toolUse") if kind == "contentBlockStart" else None
        if use and use.get("type") != "server_tool_use":
            expected[frame["contentBlockIndex"]] = [use["toolUseId"], use["name"], ""]
        elif kind == "contentBlockDelta" and frame["contentBlockIndex"] in expected:
            expected[frame["contentBlockIndex"]][2] += frame["delta"]["toolUse"]["input"]
    streamed: dict[int, list[str]] = {}
    for call in (call for delta in deltas for call in delta.get("tool_calls", ())):
        known = streamed.setdefault(call["index"], ["", "", ""])
        known[0] = call.get("id", known[0])
        known[1] += call["function"].get("name", "")
        known[2] += call["function"]["arguments"]
    assert list(streamed) == list(range(len(streamed)))
    assert list(streamed.values()) == [[call_id, name, text or "{}"] for call_id, name, text in expected.values()]


@pytest.mark.parametrize("recording", EXCHANGES.streams, ids=str)
def test_stream__recorded_and_cut_anywhere__byte_equal(recording: Recording) -> None:
    assert_same_however_cut(recording, lambda: ADAPTER.stream(request_of(recording)))


@pytest.mark.parametrize("recording", EXCHANGES.streams, ids=str)
def test_stream__recorded_and_cut_short__unusable(recording: Recording) -> None:
    end = recording.body.index(b"messageStop")
    for share in (0.0, 0.3, 0.9):
        error = replay(ADAPTER.stream(request_of(recording)), [recording.body[: int(end * share)]]).error
        assert error is not None
        assert error.kind == "unusable"


@pytest.mark.parametrize("recording", EXCHANGES.errors, ids=str)
def test_failure__recorded__kind_of_its_status_and_message_kept(recording: Recording) -> None:
    error = classified_failure(ADAPTER, recording)
    expected = parsed_by_botocore(recording.status, recording.headers, recording.body)
    assert error.message == expected["Error"]["Message"]
    assert_retry_after(error, recording)


def frames_of(body: bytes) -> list[tuple[str, dict[str, Any]]]:
    buffer = EventStreamBuffer()
    buffer.add_data(body)
    frames: list[Any] = list(buffer)
    return [(frame.headers[":event-type"], json.loads(frame.payload)) for frame in frames]


def text_of(blocks: list[dict[str, Any]]) -> str:
    return "".join(block.get("text", "") + cited_text(block.get("citationsContent", {})) for block in blocks)


def cited_text(content: Mapping[str, Any]) -> str:
    return "".join(part.get("text", "") for part in content.get("content", ()))


def reasoning_of(blocks: list[dict[str, Any]]) -> str:
    thoughts = [block["reasoningContent"].get("reasoningText", {}) for block in blocks if "reasoningContent" in block]
    return "".join(thought.get("text", "") for thought in thoughts)


def tool_uses(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    uses = [block["toolUse"] for block in blocks if "toolUse" in block]
    return [use for use in uses if use.get("type") != "server_tool_use"]


def calls_of(message: Mapping[str, Any]) -> list[tuple[str, str, Any]]:
    calls = message.get("tool_calls", ())
    return [(call["id"], call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls]


def signatures_of(message: Mapping[str, Any]) -> list[str]:
    details = message.get("reasoning_details", ())
    return [detail["signature"] for detail in details if "signature" in detail]


def assert_usage(usage: Any, recorded: Mapping[str, Any]) -> None:
    read, written = recorded.get("cacheReadInputTokens", 0), recorded.get("cacheWriteInputTokens", 0)
    assert usage.prompt_tokens == recorded["inputTokens"] + read + written
    assert usage.completion_tokens == recorded["outputTokens"]
    assert (usage.cache_read_tokens, usage.cache_write_tokens) == (read, written)
    assert usage.total_tokens == recorded["totalTokens"]
