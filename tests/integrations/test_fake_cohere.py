"""Tests the fake Cohere against the vendor's own SDK: it reads the answers, and the fake reads its requests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from cohere import ClientV2
from cohere.core.api_error import ApiError

from integrations.providers.usage import Usage
from tests.fakes.dialects.cohere import FAKE, PREAMBLE_TOKENS, SECRET
from tests.fakes.dialects.server import DialectServer, answer_with, breaks, fails
from tests.fakes.dialects.story import Call, Story

STORY = Story(
    text="Grüße 👋",
    reasoning="The user greets me.",
    calls=(Call("weather_1", "weather", {"city": "Köln"}), Call("time_2", "time", {})),
    finish="tool_calls",
    usage=Usage(prompt_tokens=30, completion_tokens=12, cache_read_tokens=16, reasoning_tokens=5),
)
MESSAGES: list[Any] = [{"role": "user", "content": "Hallo"}]


@pytest.fixture
def client(server: DialectServer) -> Iterator[ClientV2]:
    with httpx.Client() as transport:
        yield ClientV2(api_key=SECRET, base_url=server.base_url("it"), httpx_client=transport)


def assert_usage(usage: Any) -> None:
    assert (usage.tokens.input_tokens, usage.tokens.output_tokens, usage.cached_tokens) == (30, 12, 16)
    assert (usage.billed_units.input_tokens, usage.billed_units.output_tokens) == (30 - PREAMBLE_TOKENS, 7)


def test_whole__story__read_by_the_sdk(server: DialectServer, client: ClientV2) -> None:
    server.play("it", answer_with(FAKE, STORY))
    answer = client.chat(model="command-a-03-2025", messages=MESSAGES)
    content: list[Any] = list(answer.message.content or [])
    thinking, text = content
    assert (thinking.type, thinking.thinking) == ("thinking", STORY.reasoning)
    assert (text.type, text.text) == ("text", STORY.text)
    calls = [call.function for call in answer.message.tool_calls or () if call.function]
    assert [(call.name, json.loads(call.arguments or "")) for call in calls] == [
        ("weather", {"city": "Köln"}),
        ("time", {}),
    ]
    assert answer.finish_reason == "TOOL_CALL"
    assert_usage(answer.usage)


def test_stream__story__read_by_the_sdk(server: DialectServer, client: ClientV2) -> None:
    server.play("it", answer_with(FAKE, STORY))
    events: list[Any] = list(client.chat_stream(model="command-a-03-2025", messages=MESSAGES))
    contents = [event.delta.message.content for event in events if event.type == "content-delta"]
    assert "".join(content.text or "" for content in contents) == STORY.text
    assert "".join(content.thinking or "" for content in contents) == STORY.reasoning
    started = [event.delta.message.tool_calls for event in events if event.type == "tool-call-start"]
    assert [(call.id, call.function.name) for call in started] == [("weather_1", "weather"), ("time_2", "time")]
    fragments = [event.delta.message.tool_calls for event in events if event.type == "tool-call-delta"]
    assert json.loads("".join(call.function.arguments for call in fragments)) == {"city": "Köln"}
    last = events[-1]
    assert (last.type, last.delta.finish_reason) == ("message-end", "TOOL_CALL")
    assert_usage(last.delta.usage)


@pytest.mark.parametrize("status", [400, 401, 404, 422, 429, 500])
def test_failure__status__raised_by_the_sdk(server: DialectServer, client: ClientV2, status: int) -> None:
    server.play("it", fails(FAKE, status, "not like this"))
    with pytest.raises(ApiError) as caught:
        client.chat(model="command-a-03-2025", messages=MESSAGES, request_options={"max_retries": 0})
    assert caught.value.status_code == status
    assert "not like this" in str(caught.value.body)


def test_stream_failure__error_event__read_by_the_sdk(server: DialectServer, client: ClientV2) -> None:
    server.play("it", breaks(FAKE, Story(text="half"), "overloaded"))
    events: list[Any] = list(client.chat_stream(model="command-a-03-2025", messages=MESSAGES))
    assert events[-1].delta.finish_reason == "ERROR"
    assert events[-1].delta.error == "overloaded"


def test_read__what_the_sdk_sends__understood(server: DialectServer, client: ClientV2) -> None:
    server.play("it", answer_with(FAKE, Story(text="ok")))
    parameters: dict[str, Any] = {
        "model": "command-a-03-2025",
        "messages": [
            {"role": "system", "content": "Be brief"},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Look"},
                    {"type": "image_url", "image_url": {"url": "https://x/a.png"}},
                ],
            },
            {
                "role": "assistant",
                "tool_plan": "I will look.",
                "tool_calls": [
                    {"id": "w1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Köln"}'}}
                ],
            },
            {
                "role": "tool",
                "tool_call_id": "w1",
                "content": [{"type": "document", "document": {"id": "d", "data": {"text": "rain"}}}],
            },
        ],
        "tools": [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}],
        "tool_choice": "REQUIRED",
        "documents": [{"data": {"text": "Cologne"}}],
        "response_format": {"type": "json_object", "json_schema": {"type": "object"}},
        "stop_sequences": ["END"],
        "max_tokens": 9,
        "temperature": 0.5,
        "p": 0.5,
    }
    client.chat(**parameters)
    (request,) = server.requests_of("it", FAKE)
    assert (request.model, request.stream, request.system, request.secret) == (
        "command-a-03-2025",
        False,
        "Be brief",
        SECRET,
    )
    assert request.turns == (("user", "Look"),)
    assert request.images == (("url", "https://x/a.png"),)
    assert request.calls == (Call("w1", "weather", {"city": "Köln"}),)
    assert request.results == (("w1", "rain"),)
    assert (request.tools, request.tool_choice, request.documents) == (
        ("weather",),
        "required",
        (("text/plain", b"Cologne"),),
    )
    assert (request.schema, request.stop, request.max_tokens) == ({"type": "object"}, ("END",), 9)
    assert (request.temperature, request.top_p) == (0.5, 0.5)


@pytest.mark.parametrize(
    "wrong",
    [
        {"user": "u"},
        {"top_p": 0.5},
        {"messages": [{"role": "user", "content": "x", "name": "bob"}]},
        {"messages": [{"role": "developer", "content": "x"}]},
        {"messages": [{"role": "tool", "tool_call_id": "w1", "content": [{"type": "image_url"}]}]},
        {"tool_choice": "REQUIRED"},
    ],
    ids=str,
)
def test_read__what_cohere_refuses__refused(wrong: dict[str, Any]) -> None:
    body = json.dumps({"model": "m", "messages": MESSAGES, **wrong}).encode()
    with pytest.raises((AssertionError, KeyError)):
        FAKE.read("/v2/chat", {"authorization": f"Bearer {SECRET}"}, body)
