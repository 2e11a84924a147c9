"""Tests every recorded exchange of the dialect, through the adapter of its provider, against the official SDK's
reading."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from msgspec.structs import replace
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat.completion_create_params import (
    CompletionCreateParamsNonStreaming,
    CompletionCreateParamsStreaming,
)
from pydantic import TypeAdapter, ValidationError

from integrations.providers.base import ChatRequest, StreamTranslator
from integrations.providers.common.usage import read_usage
from integrations.providers.errors import FailureKind, UnsupportedParameterError
from integrations.providers.openai.parameters import OWN_FIELDS
from integrations.providers.usage import Usage
from integrations.registry import adapter_for
from tests.integrations.exchanges import credentials
from tests.integrations.recorded_exchanges import (
    assert_retry_after,
    assert_same_however_cut,
    classified_failure,
    client_request,
    exchanges_of,
    replay,
)
from tests.recordings import Recording, openai_dialect_recordings

pytestmark = pytest.mark.recordings

EXCHANGES = exchanges_of(openai_dialect_recordings())


def request_of(recording: Recording) -> ChatRequest:
    return client_request(recording, recording.request)


def stream_of(recording: Recording) -> StreamTranslator:
    return adapter_for(recording.provider).stream(request_of(recording))


def data_lines(recording: Recording) -> list[dict[str, Any]]:
    """Returns the stream's chunks, read by a simple parser."""
    lines = recording.body.decode().replace("\r\n", "\n").split("\n")
    payloads = [line[5:].strip() for line in lines if line.startswith("data:")]
    return [json.loads(payload) for payload in payloads if payload and payload != "[DONE]"]


def reasoning_of(fields: Any) -> str:
    """Returns the reasoning of a message or delta, in whichever field the vendor has put it."""
    text = getattr(fields, "reasoning_content", None) or getattr(fields, "reasoning", None)
    details = getattr(fields, "reasoning_details", None) or []
    return text or "".join(detail.get("text") or "" for detail in details)


def content_of(chunks: Iterable[ChatCompletionChunk]) -> dict[str, Any]:
    """Returns text, reasoning, tool calls and finish reasons by choice, joined from the SDK's own types."""
    found: dict[str, Any] = {
        "text": defaultdict(str),
        "reasoning": defaultdict(str),
        "calls": defaultdict(lambda: ["", "", ""]),
        "finish": {},
    }
    for chunk in chunks:
        for choice in chunk.choices:
            delta = choice.delta
            found["text"][choice.index] += delta.content or ""
            found["reasoning"][choice.index] += reasoning_of(delta)
            for call in delta.tool_calls or []:
                known = found["calls"][(choice.index, call.index)]
                known[0] = call.id or known[0]
                if call.function:
                    known[1] += call.function.name or ""
                    known[2] += call.function.arguments or ""
            if choice.finish_reason:
                found["finish"][choice.index] = choice.finish_reason
    return found


def sdk_chunks(payloads: Iterable[dict[str, Any]]) -> list[ChatCompletionChunk]:
    return [ChatCompletionChunk.construct(**payload) for payload in payloads]


@pytest.mark.parametrize("recording", EXCHANGES.streams, ids=str)
def test_stream__recorded__content_as_the_sdk_reads_it_and_usage_once(recording: Recording) -> None:
    replayed = replay(stream_of(recording), [recording.body])
    events, error, stream = replayed.events, replayed.error, replayed.stream
    payloads = data_lines(recording)
    chunks = [json.loads(event.data) for event in events]
    reported = [payload for payload in payloads if payload.get("error")]
    assert (error is not None) == bool(reported)
    expected = content_of(sdk_chunks(payload for payload in payloads if not payload.get("error")))
    streamed = content_of(sdk_chunks(chunks))
    assert streamed["text"] == expected["text"]
    assert streamed["reasoning"] == expected["reasoning"]
    named = [choice["delta"].get("reasoning_content") for chunk in chunks for choice in chunk["choices"]]
    assert "".join(filter(None, named)) == expected["reasoning"][0]
    assert streamed["calls"] == expected["calls"]
    assert "".join(event.text for event in events) == expected["text"][0]
    if error is not None:
        assert error.kind is FailureKind.REJECTED
        return
    # Snowflake sends no reason at all.
    assert streamed["finish"] == (expected["finish"] or {0: "stop"})
    assert stream.finish_reason == streamed["finish"][0]
    assert_specified(chunks)
    assert_usage(payloads, chunks, stream.usage)


def assert_specified(chunks: list[dict[str, Any]]) -> None:
    *before, last = chunks
    for chunk in chunks:
        assert chunk["object"] == "chat.completion.chunk"
        assert isinstance(chunk["id"], str)
        assert isinstance(chunk["created"], int)
        assert isinstance(chunk["model"], str)
        assert chunk["choices"]
    for chunk in before:
        assert not chunk.get("usage")
        assert not (chunk.get("x_groq") or {}).get("usage")
    ended = [choice["finish_reason"] for chunk in chunks for choice in chunk["choices"] if choice["finish_reason"]]
    assert len(ended) == len({choice["index"] for chunk in chunks for choice in chunk["choices"]})
    assert [choice["delta"] for choice in last["choices"]] == [{}]


def assert_usage(payloads: list[dict[str, Any]], chunks: list[dict[str, Any]], usage: Usage | None) -> None:
    recorded = [payload.get("usage") or (payload.get("x_groq") or {}).get("usage") for payload in payloads]
    reported = [item for item in recorded if item]
    if not reported:
        assert usage is None
        return
    assert chunks[-1]["usage"] == reported[-1]
    assert usage == read_usage(reported[-1])


@pytest.mark.parametrize("recording", EXCHANGES.streams, ids=str)
def test_stream__recorded_and_cut_anywhere__byte_equal(recording: Recording) -> None:
    assert_same_however_cut(recording, lambda: stream_of(recording))


@pytest.mark.parametrize("recording", EXCHANGES.whole, ids=str)
def test_answer__recorded__as_the_sdk_reads_it(recording: Recording) -> None:
    answer = adapter_for(recording.provider).parse_response(request_of(recording), recording.body)
    expected = ChatCompletion.construct(**json.loads(recording.body))
    completion = ChatCompletion.construct(**json.loads(answer.body))
    for ours, theirs in zip(completion.choices, expected.choices, strict=True):
        # Azure leaves the message out of an answer that its filter stopped.
        if getattr(theirs, "message", None) is not None:
            assert ours.message.content == theirs.message.content
            assert ours.message.tool_calls == theirs.message.tool_calls
            assert getattr(ours.message, "reasoning_content", "") == reasoning_of(theirs.message)
        assert ours.finish_reason == theirs.finish_reason
    assert completion.usage == expected.usage
    assert (answer.model, answer.finish_reason) == (expected.model, expected.choices[0].finish_reason)
    assert expected.usage is not None
    assert answer.usage == read_usage(expected.usage.model_dump())


@pytest.mark.parametrize("recording", EXCHANGES.errors, ids=str)
def test_failure__recorded__kind_of_its_status_and_message_kept(recording: Recording) -> None:
    error = classified_failure(adapter_for(recording.provider), recording)
    assert error.message
    assert not error.message.startswith(("{", "["))
    assert_retry_after(error, recording)


# Mistral's adapter writes its own bodies: tests/integrations/test_mistral_recordings.py.
REQUESTS = [recording for recording in EXCHANGES.all if recording.provider != "mistral"]
ACCEPTED: dict[bool, TypeAdapter[Any]] = {
    False: TypeAdapter(CompletionCreateParamsNonStreaming),
    True: TypeAdapter(CompletionCreateParamsStreaming),
}


def sent(recording: Recording, *, crosses_vendor: bool = False) -> dict[str, Any]:
    request = replace(request_of(recording), crosses_vendor=crosses_vendor)
    upstream_request = adapter_for(recording.provider).build_request(
        request, credentials(recording.provider, "https://upstream.test/v1")
    )
    assert crosses_vendor or not upstream_request.warnings
    body: dict[str, Any] = json.loads(upstream_request.body)
    return body


def all_of(validated: Any) -> Any:
    """Returns the value with all iterables read, since they are validated only while they are read."""
    if isinstance(validated, Mapping):
        return {name: all_of(value) for name, value in validated.items()}
    if isinstance(validated, str | bytes) or not isinstance(validated, Iterable):
        return validated
    return [all_of(item) for item in validated]


def accepted(body: Mapping[str, Any]) -> bool:
    try:
        all_of(ACCEPTED[bool(body.get("stream"))].validate_python(dict(body)))
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize("recording", REQUESTS, ids=str)
def test_request__recorded__sent_as_it_was(recording: Recording) -> None:
    # OpenRouter's `models` and `provider` are also fields of the gateway, which has acted on them.
    expected = {name: value for name, value in recording.request.items() if name not in OWN_FIELDS}
    if recording.stream:
        # The gateway always requests usage.
        expected["stream_options"] = {**(expected.get("stream_options") or {}), "include_usage": True}
    assert sent(recording) == expected
    assert accepted(recording.request) <= accepted(sent(recording))


@pytest.mark.parametrize("recording", REQUESTS, ids=str)
def test_request__recorded_and_sent_as_a_fallback__accepted_by_the_sdks_types(recording: Recording) -> None:
    try:
        body = sent(recording, crosses_vendor=True)
    except UnsupportedParameterError as refused:
        assert refused.parameter in {*recording.request}
        return
    assert accepted(recording.request) <= accepted(body)
    roles = [{"developer": "system"}.get(message["role"], message["role"]) for message in recording.request["messages"]]
    says_json = "json" in json.dumps(recording.request["messages"]).lower()
    if recording.request.get("response_format") == {"type": "json_object"} and not says_json:
        roles = ["system", *roles]  # OpenAI refuses such a request, so the word is added.
    assert [message["role"] for message in body["messages"]] == roles
