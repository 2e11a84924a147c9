"""Tests the fakes of the OpenAI dialect against the official SDK: it reads their answers, and they read its
requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import AzureOpenAI, OpenAI
from openai.types.chat import ChatCompletion

from integrations.providers.usage import Usage
from tests.fakes.dialects.openai import FAKES, VENDORS, OpenAIFake
from tests.fakes.dialects.server import DialectServer, answer_with, breaks, fails
from tests.fakes.dialects.story import Call, Story

CALLS = (Call("call_1", "weather", {"city": "Oslo"}), Call("call_2", "time", {}))
STORY = Story(
    text="Hallo 👋 “Welt”",
    reasoning="Let me think.",
    calls=CALLS,
    finish="tool_calls",
    usage=Usage(prompt_tokens=30, completion_tokens=12, cache_read_tokens=8, reasoning_tokens=4),
)
TOOL: Any = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}
MESSAGES: Any = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "Weather?"}]},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "weather", "arguments": '{"a": 1}'}}],
    },
    {"role": "tool", "tool_call_id": "c", "content": "18"},
]


@pytest.fixture(params=sorted(VENDORS))
def fake(request: pytest.FixtureRequest) -> OpenAIFake:
    return FAKES[request.param]


@pytest.fixture
def client(server: DialectServer, fake: OpenAIFake) -> Iterator[OpenAI]:
    with sdk(server, fake) as sdk_client:
        yield sdk_client


def sdk(server: DialectServer, fake: OpenAIFake) -> OpenAI:
    access = fake.credentials(server.base_url(fake.provider))
    if fake.provider == "azure_openai":
        return AzureOpenAI(
            azure_endpoint=access.base_url, api_key=access.secret, api_version="2024-10-21", max_retries=0
        )
    return OpenAI(base_url=access.base_url, api_key=access.secret, max_retries=0)


def test_fake__whole_answer__as_the_sdk_reads_it(server: DialectServer, client: OpenAI, fake: OpenAIFake) -> None:
    server.play(fake.provider, answer_with(fake, STORY))
    answer: ChatCompletion = client.chat.completions.create(
        model="m-1",
        messages=MESSAGES,
        tools=[TOOL],
        tool_choice="required",
        max_tokens=7,
        temperature=0.5,
        top_p=0.9,
        stop=["END"],
    )
    (choice,) = answer.choices
    assert (choice.message.content, choice.finish_reason) == (STORY.text, "tool_calls")
    assert [(call.id, call.type) for call in choice.message.tool_calls or []] == [
        (call.id, "function") for call in CALLS
    ]
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (30, 12)
    (request,) = server.requests_of(fake.provider, fake)
    assert (request.model, request.stream, request.system, request.turns) == (
        "m-1",
        False,
        "Be brief.",
        (("user", "Weather?"),),
    )
    assert (request.calls, request.results) == ((Call("c", "weather", {"a": 1}),), (("c", "18"),))
    assert (request.tools, request.tool_choice) == (("weather",), "required")
    assert (request.max_tokens, request.temperature, request.top_p, request.stop) == (7, 0.5, 0.9, ("END",))
    assert request.secret == fake.vendor.key


def test_fake__stream__as_the_sdk_adds_it_up(server: DialectServer, client: OpenAI, fake: OpenAIFake) -> None:
    server.play(fake.provider, answer_with(fake, STORY))
    with client.chat.completions.stream(
        model="m-1", messages=MESSAGES, tools=[TOOL], stream_options={"include_usage": True}
    ) as stream:
        for _ in stream:
            pass
        answer = stream.get_final_completion()
    (choice,) = answer.choices
    assert (choice.message.content, choice.finish_reason) == (STORY.text, "tool_calls")
    called = [(call.id, call.function.name, call.function.arguments) for call in choice.message.tool_calls or []]
    assert called == [("call_1", "weather", '{"city": "Oslo"}'), ("call_2", "time", "{}")]
    assert server.requests_of(fake.provider, fake)[-1].stream


def test_fake__failures__raised_by_the_sdk(server: DialectServer, client: OpenAI, fake: OpenAIFake) -> None:
    server.play(fake.provider, fails(fake, 429, "slow down, please", retry_after=3))
    with pytest.raises(openai.RateLimitError) as caught:
        client.chat.completions.create(model="m-1", messages=MESSAGES)
    assert caught.value.response.headers["retry-after"] == "3"
    assert "slow down, please" in caught.value.response.text
    server.play(fake.provider, breaks(fake, Story(text="Hello"), "fell over"))
    with pytest.raises(openai.APIError, match="fell over"):
        list(client.chat.completions.create(model="m-1", messages=MESSAGES, stream=True))


def test_fake__request_of_another_kind__not_taken(server: DialectServer) -> None:
    fake = FAKES["ollama"]
    server.play(fake.provider, answer_with(fake, STORY))
    image: Any = [{"type": "image_url", "image_url": {"url": "https://files.test/a.png"}}]
    with sdk(server, fake) as client, pytest.raises(openai.BadRequestError, match="data only"):
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": image}])
