"""Tests every recorded exchange of the Messages API in both directions against the vendor's official SDK."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import httpx2
import pytest
from anthropic import Anthropic, APIStatusError
from anthropic.types import Message
from anthropic.types.beta import BetaContentBlockParam, BetaMessageParam, BetaTextBlockParam, BetaToolUnionParam
from anthropic.types.beta.message_create_params import MessageCreateParamsNonStreaming, MessageCreateParamsStreaming
from pydantic import TypeAdapter

from integrations.providers.anthropic import ADAPTER
from integrations.providers.base import ChatRequest
from integrations.providers.errors import FailureKind, ProviderError
from integrations.providers.usage import Usage
from tests.integrations.exchanges import credentials
from tests.integrations.recorded_exchanges import (
    assert_retry_after,
    assert_same_however_cut,
    classified_failure,
    client_request,
    exchanges_of,
    replay,
)
from tests.integrations.reverse.anthropic import openai_fields
from tests.recordings import Recording, recordings_of

pytestmark = pytest.mark.recordings

EXCHANGES = exchanges_of(recordings_of("anthropic.messages"))
FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}
# The types of Anthropic's beta API include all fields of its other types.
TOOL: TypeAdapter[Any] = TypeAdapter(BetaToolUnionParam)
MESSAGE: TypeAdapter[Any] = TypeAdapter(BetaMessageParam)
BLOCK: TypeAdapter[Any] = TypeAdapter(BetaContentBlockParam)
TEXT: TypeAdapter[Any] = TypeAdapter(BetaTextBlockParam)

Json = dict[str, Any]


def request_of(recording: Recording) -> ChatRequest:
    return client_request(recording, openai_fields(recording.request))


def sdk(recording: Recording, status: int = 200) -> Anthropic:
    """Returns the official client connected to the recorded bytes."""
    kind = "text/event-stream" if recording.stream and status == 200 else "application/json"

    def answer(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(status, headers={**recording.headers, "content-type": kind}, content=recording.body)

    client = httpx2.Client(transport=httpx2.MockTransport(answer))
    return Anthropic(api_key="sk-ant-test", base_url="http://upstream.test", http_client=client, max_retries=0)


def read_by_the_sdk(recording: Recording) -> Message:
    ask: Json = {"model": "claude-haiku-5-5", "max_tokens": 1024, "messages": [{"role": "user", "content": "x"}]}
    with sdk(recording) as client:
        if not recording.stream:
            return client.messages.create(**ask)
        with client.messages.stream(**ask) as stream:
            return stream.get_final_message()


# The following tests concern requests.


@pytest.mark.parametrize("recording", EXCHANGES.all, ids=str)
def test_request__recorded__the_same_body(recording: Recording) -> None:
    request = ADAPTER.build_request(request_of(recording), credentials("anthropic"))
    assert request.url == "https://api.anthropic.com/v1/messages"
    assert not request.warnings
    assert plain(json.loads(request.body)) == plain(recording.request)


@pytest.mark.parametrize("recording", EXCHANGES.all, ids=str)
def test_request__recorded__the_sdks_types_take_it(recording: Recording) -> None:
    body = json.loads(ADAPTER.build_request(request_of(recording), credentials("anthropic")).body)
    assert_the_sdk_takes(body)


def plain(body: Mapping[str, Any]) -> Json:
    """Returns the body without different spellings of the same value and without values that have no effect."""
    comparable = {name: value for name, value in body.items() if value is not None and value is not False}
    # One text may be a string or a list with one block.
    if "system" in comparable:
        comparable["system"] = blocks_of(comparable["system"])
    comparable["messages"] = [
        {**message, "content": blocks_of(message["content"])} for message in comparable["messages"]
    ]
    # An empty description has no effect.
    if "tools" in comparable:
        comparable["tools"] = [
            {k: v for k, v in tool.items() if (k, v) != ("description", "")} for tool in comparable["tools"]
        ]
    # The beta had the schema of the answer in a field of its own.
    if "output_format" in comparable:
        comparable["output_config"] = {**comparable.get("output_config", {}), "format": comparable.pop("output_format")}
    return comparable


def blocks_of(content: Any) -> list[Json]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    found = []
    for block in content:
        plain_block = {name: value for name, value in block.items() if (name, value) != ("is_error", False)}
        if block["type"] == "tool_result" and "content" in block:
            plain_block["content"] = blocks_of(block["content"])
        found.append(plain_block)
    return found


def assert_the_sdk_takes(body: Mapping[str, Any]) -> None:
    """Validates level by level, since the SDK's types declare lists as iterables, which are not validated inside."""
    shape = MessageCreateParamsStreaming if body.get("stream") else MessageCreateParamsNonStreaming
    TypeAdapter(shape).validate_python(body)
    for tool in body.get("tools", ()):
        TOOL.validate_python(tool)
    for block in blocks_of(body.get("system", "")):
        TEXT.validate_python(block)
    for message in body["messages"]:
        MESSAGE.validate_python(message)
        for block in blocks_of(message["content"]):
            BLOCK.validate_python(block)
            for inner in block.get("content", ()) if block["type"] == "tool_result" else ():
                BLOCK.validate_python(inner)


# The following tests concern answers.


@pytest.mark.parametrize("recording", EXCHANGES.whole, ids=str)
def test_answer__recorded__as_the_sdk_reads_it(recording: Recording) -> None:
    answer = ADAPTER.parse_response(request_of(recording), recording.body)
    message = read_by_the_sdk(recording)
    completion = json.loads(answer.body)
    (choice,) = completion["choices"]
    assert content_of(choice["message"]) == content_of_sdk(message)
    assert (completion["id"], completion["model"], answer.model) == (message.id, message.model, message.model)
    assert choice["finish_reason"] == answer.finish_reason == finish_of_sdk(message)
    assert_usage(completion["usage"], answer.usage, message)


@pytest.mark.parametrize("recording", EXCHANGES.streams, ids=str)
def test_stream__recorded__as_the_sdk_reads_it_and_usage_once(recording: Recording) -> None:
    replayed = replay(ADAPTER.stream(request_of(recording)), [recording.body])
    events, error, stream = replayed.events, replayed.error, replayed.stream
    if "resp:stream_error" in recording.features:
        assert_the_sdks_error(recording, error)
        return
    assert error is None
    message = read_by_the_sdk(recording)
    chunks = [json.loads(event.data) for event in events]
    assert content_of(joined(chunks)) == content_of_sdk(message)
    assert "".join(event.text for event in events) == text_of_sdk(message)
    assert {chunk["id"] for chunk in chunks} == {message.id}
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert chunks[-1]["choices"] == [{"index": 0, "delta": {}, "finish_reason": finish_of_sdk(message)}]
    assert all(chunk["choices"][0]["finish_reason"] is None and "usage" not in chunk for chunk in chunks[:-1])
    assert (stream.finish_reason, stream.model) == (finish_of_sdk(message), message.model)
    assert_usage(chunks[-1]["usage"], stream.usage, message)


def assert_the_sdks_error(recording: Recording, error: ProviderError | None) -> None:
    with pytest.raises(APIStatusError) as caught:
        read_by_the_sdk(recording)
    assert error is not None
    assert error.message == caught.value.body["error"]["message"]  # type: ignore[index]  # the body is the event's JSON
    assert error.kind in (FailureKind.UNAVAILABLE, FailureKind.RATE_LIMITED, FailureKind.REJECTED)


@pytest.mark.parametrize("recording", EXCHANGES.streams, ids=str)
def test_stream__recorded_and_cut_anywhere__byte_equal(recording: Recording) -> None:
    assert_same_however_cut(recording, lambda: ADAPTER.stream(request_of(recording)))


@pytest.mark.parametrize("recording", EXCHANGES.errors, ids=str)
def test_failure__recorded__kind_of_its_status_and_the_sdks_message(recording: Recording) -> None:
    error = classified_failure(ADAPTER, recording)
    with sdk(recording, recording.status) as client, pytest.raises(APIStatusError) as caught:
        client.messages.create(model="m", max_tokens=1, messages=[{"role": "user", "content": "x"}])
    assert error.message == caught.value.body["error"]["message"]  # type: ignore[index]  # the body is the error's JSON
    assert_retry_after(error, recording)


# The following functions read the same content on both sides.


def content_of(message: Mapping[str, Any]) -> Json:
    details = message.get("reasoning_details") or []
    calls = [(call["id"], call["function"]) for call in message.get("tool_calls") or []]
    return {
        "text": message["content"],
        "reasoning": message.get("reasoning_content") or "",
        "details": [(d["type"], d.get("text"), d.get("signature"), d.get("data")) for d in details],
        "calls": [(call_id, function["name"], json.loads(function["arguments"])) for call_id, function in calls],
        "cited": {note["url_citation"]["url"] for note in message.get("annotations") or []},
    }


def content_of_sdk(message: Message) -> Json:
    calls = [(block.id, block.name, block.input) for block in message.content if block.type == "tool_use"]
    text = text_of_sdk(message)
    thoughts: list[tuple[str, str | None, str | None, str | None]] = []
    cited: set[str] = set()
    for block in message.content:
        if block.type == "thinking":
            thoughts.append(("reasoning.text", block.thinking, block.signature, None))
        elif block.type == "redacted_thinking":
            thoughts.append(("reasoning.encrypted", None, None, block.data))
        elif block.type == "text":
            cited |= {note.url for note in block.citations or [] if note.type == "web_search_result_location"}
    return {
        "text": None if calls and not text else text,
        "reasoning": "".join(text or "" for _, text, _, _ in thoughts),
        "details": thoughts,
        "calls": calls,
        "cited": cited,
    }


def text_of_sdk(message: Message) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


def finish_of_sdk(message: Message) -> str:
    return FINISH_REASONS[message.stop_reason or "end_turn"]


def assert_usage(reported: Mapping[str, Any], usage: Usage | None, message: Message) -> None:
    counts = message.usage
    cached, written = counts.cache_read_input_tokens or 0, counts.cache_creation_input_tokens or 0
    thought = counts.output_tokens_details.thinking_tokens if counts.output_tokens_details else 0
    prompt = counts.input_tokens + cached + written
    searches = counts.server_tool_use.web_search_requests or 0 if counts.server_tool_use else 0
    assert usage == Usage(prompt, counts.output_tokens, cached, written, thought or 0, searches=searches)
    assert (reported["prompt_tokens"], reported["completion_tokens"]) == (prompt, counts.output_tokens)
    assert reported["total_tokens"] == prompt + counts.output_tokens


def joined(chunks: Iterable[Mapping[str, Any]]) -> Json:
    """Returns the message that the chunks add up to."""
    message: Json = {
        "content": "",
        "reasoning_content": "",
        "tool_calls": [],
        "reasoning_details": [],
        "annotations": [],
    }
    for chunk in chunks:
        delta = chunk["choices"][0]["delta"]
        message["content"] += delta.get("content") or ""
        message["reasoning_content"] += delta.get("reasoning_content") or ""
        message["reasoning_details"] += delta.get("reasoning_details") or []
        message["annotations"] += delta.get("annotations") or []
        for call in delta.get("tool_calls") or []:
            if "id" in call:
                assert call["index"] == len(message["tool_calls"])
                message["tool_calls"].append({"id": call["id"], "function": {**call["function"]}})
            else:
                message["tool_calls"][call["index"]]["function"]["arguments"] += call["function"]["arguments"]
    if message["tool_calls"] and not message["content"]:
        message["content"] = None
    return message
