"""Tests the fake Mistral against the vendor's own SDK: it reads the answers, and the fake reads its requests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from mistralai.client import Mistral
from mistralai.client.errors import HTTPValidationError, SDKError
from mistralai.client.models import ChatCompletionResponse

from integrations.providers.usage import Usage
from tests.fakes.dialects.mistral import FAKE, SECRET
from tests.fakes.dialects.server import DialectServer, answer_with, breaks, fails
from tests.fakes.dialects.story import Call, Story
from tests.integrations.mistral_sdk import text_of, thinking_of

STORY = Story(
    text="Grüße 👋",
    reasoning="The user greets me.",
    signature="c2lnbmVk",
    calls=(Call("aB3dE6gH9", "weather", {"city": "Köln"}), Call("zY8xW5vU2", "time", {})),
    finish="tool_calls",
    usage=Usage(prompt_tokens=30, completion_tokens=12, cache_read_tokens=16),
)
MESSAGES: list[Any] = [{"role": "user", "content": "Hallo"}]


@pytest.fixture
def client(server: DialectServer) -> Iterator[Mistral]:
    with Mistral(api_key=SECRET, server_url=server.base_url("it")) as sdk:
        yield sdk


def test_whole__story__read_by_the_sdk(server: DialectServer, client: Mistral) -> None:
    server.play("it", answer_with(FAKE, STORY))
    answer = client.chat.complete(model="mistral-small-latest", messages=MESSAGES)
    assert isinstance(answer, ChatCompletionResponse)
    message = answer.choices[0].message
    assert message is not None
    assert (text_of(message.content), thinking_of(message.content)) == (STORY.text, STORY.reasoning)
    assert [(call.id, call.function.name) for call in message.tool_calls or ()] == [
        (call.id, call.name) for call in STORY.calls
    ]
    assert answer.choices[0].finish_reason == "tool_calls"
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (30, 12)


def test_stream__story__read_by_the_sdk(server: DialectServer, client: Mistral) -> None:
    server.play("it", answer_with(FAKE, STORY))
    with client.chat.stream(model="mistral-small-latest", messages=MESSAGES) as events:
        chunks = [event.data for event in events]
    deltas = [choice.delta for chunk in chunks for choice in chunk.choices]
    assert "".join(text_of(delta.content) for delta in deltas) == STORY.text
    assert "".join(thinking_of(delta.content) for delta in deltas) == STORY.reasoning
    assert [call.function.name for delta in deltas for call in delta.tool_calls or ()] == ["weather", "time"]
    assert chunks[-1].choices[0].finish_reason == "tool_calls"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens == 42


@pytest.mark.parametrize(("status", "kind"), [(401, SDKError), (422, HTTPValidationError), (429, SDKError)])
def test_failure__status__raised_by_the_sdk(
    server: DialectServer, client: Mistral, status: int, kind: type[Exception]
) -> None:
    server.play("it", fails(FAKE, status, "not like this"))
    with pytest.raises(kind) as caught:
        client.chat.complete(model="mistral-small-latest", messages=MESSAGES)
    assert getattr(caught.value, "status_code", None) == status
    assert "not like this" in getattr(caught.value, "body", "")


def test_stream_failure__error_event__no_chunk_for_the_sdk(server: DialectServer, client: Mistral) -> None:
    server.play("it", breaks(FAKE, Story(text="half"), "overloaded"))
    with (
        pytest.raises(Exception, match="validation failed"),
        client.chat.stream(model="mistral-small-latest", messages=MESSAGES) as events,
    ):
        list(events)


def test_read__what_the_sdk_sends__understood(server: DialectServer, client: Mistral) -> None:
    server.play("it", answer_with(FAKE, Story(text="ok")))
    parameters: dict[str, Any] = {
        "model": "mistral-small-latest",
        "messages": [
            {"role": "system", "content": "Be brief"},
            {
                "role": "user",
                "content": [{"type": "text", "text": "Look"}, {"type": "image_url", "image_url": "https://x/a.png"}],
            },
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}], "signature": "s1"}],
                "tool_calls": [{"id": "aB3dE6gH9", "function": {"name": "weather", "arguments": '{"city":"Köln"}'}}],
            },
            {"role": "tool", "tool_call_id": "aB3dE6gH9", "content": "rain"},
        ],
        "tools": [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}],
        "tool_choice": "any",
        "response_format": {"type": "json_schema", "json_schema": {"name": "r", "schema": {"type": "object"}}},
        "stop": ["END"],
        "max_tokens": 9,
        "temperature": 0.5,
        "top_p": 0.5,
    }
    client.chat.complete(**parameters)
    (request,) = server.requests_of("it", FAKE)
    assert (request.model, request.stream, request.system, request.secret) == (
        "mistral-small-latest",
        False,
        "Be brief",
        SECRET,
    )
    assert request.turns == (("user", "Look"),)
    assert request.images == (("url", "https://x/a.png"),)
    assert request.calls == (Call("aB3dE6gH9", "weather", {"city": "Köln"}),)
    assert request.results == (("aB3dE6gH9", "rain"),)
    assert (request.tools, request.tool_choice, request.signatures) == (("weather",), "required", ("s1",))
    assert (request.schema, request.stop, request.max_tokens) == ({"type": "object"}, ("END",), 9)
    assert (request.temperature, request.top_p) == (0.5, 0.5)


@pytest.mark.parametrize(
    "wrong",
    [
        {"user": "u"},
        {"messages": [{"role": "user", "content": "x", "name": "bob"}]},
        {"messages": [{"role": "developer", "content": "x"}]},
        {"messages": [{"role": "tool", "content": "x", "tool_call_id": "call_1"}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {}}]}]},
    ],
    ids=str,
)
def test_read__what_mistral_refuses__refused(wrong: dict[str, Any]) -> None:
    body = json.dumps({"model": "m", "messages": MESSAGES, **wrong}).encode()
    with pytest.raises((AssertionError, KeyError)):
        FAKE.read("/v1/chat/completions", {"authorization": f"Bearer {SECRET}"}, body)
