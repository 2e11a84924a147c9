"""Tests the fake of the Messages API against the vendor's official SDK: its answers and its reading of requests."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import anthropic
import pytest
from anthropic import Anthropic
from anthropic.types import Message

from integrations.providers.usage import Usage
from tests.fakes.dialects.anthropic import FAKE
from tests.fakes.dialects.server import DialectServer, answer_with, breaks, fails, read_request
from tests.fakes.dialects.story import Call, Finish, ReadRequest, Story

STORY = Story(
    text="Grüße 👋, it is 18 degrees.",
    reasoning="The user greets me.",
    signature="c2lnbmVk",
    calls=(Call("toolu_1", "get_weather", {"city": "Zürich"}), Call("toolu_2", "ping", {})),
    finish="tool_calls",
    usage=Usage(100, 20, cache_read_tokens=60, cache_write_tokens=10, reasoning_tokens=8),
    model="claude-sonnet-5",
)
ASK: dict[str, Any] = {
    "model": "claude-sonnet-5",
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "Hello"}],
}
STOP_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}


@pytest.fixture
def client(server: DialectServer) -> Iterator[Anthropic]:
    with Anthropic(api_key="sk-ant-test", base_url=server.base_url("s"), max_retries=0) as sdk_client:
        yield sdk_client


def read_by_sdk(client: Anthropic, *, stream: bool, **more: Any) -> Message:
    if not stream:
        message: Message = client.messages.create(**{**ASK, **more})
        return message
    with client.messages.stream(**{**ASK, **more}) as events:
        return events.get_final_message()


@pytest.mark.parametrize("stream", [False, True])
def test_fake__story__read_by_the_sdk(server: DialectServer, client: Anthropic, stream: bool) -> None:
    server.play("s", answer_with(FAKE, STORY))
    message = read_by_sdk(client, stream=stream)
    thinking, text, weather, ping = message.content
    assert thinking.type == "thinking"
    assert (thinking.thinking, thinking.signature) == (STORY.reasoning, STORY.signature)
    assert text.type == "text"
    assert text.text == STORY.text
    assert weather.type == "tool_use"
    assert (weather.id, weather.name, weather.input) == ("toolu_1", "get_weather", {"city": "Zürich"})
    assert ping.type == "tool_use"
    assert (ping.id, ping.name, ping.input) == ("toolu_2", "ping", {})
    assert (message.model, message.stop_reason) == ("claude-sonnet-5", "tool_use")
    usage = message.usage
    assert (usage.input_tokens, usage.cache_read_input_tokens, usage.cache_creation_input_tokens) == (30, 60, 10)
    assert usage.output_tokens == 20
    assert usage.output_tokens_details is not None
    assert usage.output_tokens_details.thinking_tokens == 8


@pytest.mark.parametrize("finish", STOP_REASONS)
@pytest.mark.parametrize("stream", [False, True])
def test_fake__finish__in_the_vendors_words(
    server: DialectServer, client: Anthropic, stream: bool, finish: Finish
) -> None:
    server.play("s", answer_with(FAKE, Story(finish=finish)))
    message = read_by_sdk(client, stream=stream)
    assert (message.stop_reason, message.content) == (STOP_REASONS[finish], [])


@pytest.mark.parametrize(
    ("status", "raised"),
    [
        (400, anthropic.BadRequestError),
        (401, anthropic.AuthenticationError),
        (403, anthropic.PermissionDeniedError),
        (404, anthropic.NotFoundError),
        (413, anthropic.APIStatusError),
        (429, anthropic.RateLimitError),
        (500, anthropic.InternalServerError),
        (529, anthropic.InternalServerError),
    ],
)
def test_fake__failure__raised_by_the_sdk(
    server: DialectServer, client: Anthropic, status: int, raised: type[anthropic.APIStatusError]
) -> None:
    server.play("s", fails(FAKE, status, "no such luck", retry_after=7))
    with pytest.raises(raised) as caught:
        read_by_sdk(client, stream=False)
    assert caught.value.status_code == status
    assert caught.value.response.headers["retry-after"] == "7"
    assert "no such luck" in caught.value.message


@pytest.mark.parametrize("story", [Story(), Story(text="Grüße 👋")])
def test_fake__error_inside_a_stream__raised_by_the_sdk(server: DialectServer, client: Anthropic, story: Story) -> None:
    server.play("s", breaks(FAKE, story, "overloaded, sorry"))
    text_so_far = ""
    with pytest.raises(anthropic.APIStatusError, match="overloaded, sorry"), client.messages.stream(**ASK) as events:
        for text in events.text_stream:
            text_so_far += text
    assert text_so_far == story.text


def test_fake__request_of_the_sdk__understood(server: DialectServer, client: Anthropic) -> None:
    server.play("s", answer_with(FAKE, Story(text="ok")))
    png = b"\x89PNG\r\n\x1a\n"
    image = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(png).decode()}
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    read_by_sdk(
        client,
        stream=True,
        system="Be brief.",
        messages=[
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Look:"},
                    {"type": "image", "source": image},
                    {"type": "document", "source": {"type": "url", "url": "https://files.test/a.pdf"}},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "b3du"},
                    {"type": "text", "text": "I call."},
                    {"type": "tool_use", "id": "toolu_1", "name": "ping", "input": {"n": 1}},
                ],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "pong"}]},
        ],
        tools=[{"name": "ping", "input_schema": {"type": "object"}}],
        tool_choice={"type": "tool", "name": "ping"},
        stop_sequences=["END"],
        output_config={"format": {"type": "json_schema", "schema": schema}},
    )
    (received,) = server.script("s").received
    assert read_request(FAKE, received) == ReadRequest(
        model="claude-sonnet-5",
        stream=True,
        system="Be brief.",
        turns=(("user", "Look:"), ("assistant", "I call.")),
        images=(("image/png", png),),
        documents=(("url", "https://files.test/a.pdf"),),
        tools=("ping",),
        calls=(Call("toolu_1", "ping", {"n": 1}),),
        results=(("toolu_1", "pong"),),
        tool_choice="function:ping",
        schema=schema,
        stop=("END",),
        max_tokens=100,
        signatures=("b3du",),
        secret="sk-ant-test",
    )


@pytest.mark.parametrize("missing", ["x-api-key", "anthropic-version", "content-type"])
def test_fake__without_a_header__refused(missing: str) -> None:
    headers = {"x-api-key": "k", "anthropic-version": "2023-06-01", "content-type": "application/json"}
    del headers[missing]
    with pytest.raises(AssertionError):
        FAKE.read("/v1/messages", headers, json.dumps(ASK).encode())
