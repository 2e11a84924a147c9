"""The official openai Python SDK, unchanged: only base URL and key are set. The provider is the sandbox."""

from __future__ import annotations

import json
from collections.abc import Iterator

import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam
from pydantic import BaseModel

from tests.gateway.service import Gateway

PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAA"
    "DUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
ASK: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Say hello"}]
MODEL = "openai_compatible/echo"
WEATHER: ChatCompletionToolParam = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}


class Step(BaseModel):
    explanation: str
    result: int


class Solution(BaseModel):
    steps: list[Step]
    answer: str


@pytest.fixture
def client(sandboxed: Gateway) -> Iterator[openai.OpenAI]:
    with sandboxed.openai() as made:
        yield made


@pytest.fixture
def base_url(sandboxed: Gateway) -> str:
    return f"{sandboxed.service.base_url()}/api/gateway/v1"


def test_sdk__plain__answers(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model=MODEL, messages=ASK, temperature=0.2, max_tokens=50, user="u", seed=1)

    assert answer.object == "chat.completion"
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].message.content
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_sdk__stream__adds_up_to_the_whole_answer(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(model=MODEL, messages=ASK)

    chunks = list(client.chat.completions.create(model=MODEL, messages=ASK, stream=True))

    text = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
    assert text == whole.choices[0].message.content
    assert [chunk.usage is not None for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert chunks[-1].choices[0].finish_reason == "stop"


def test_sdk__stream_helper__sees_events_and_the_final_completion(client: openai.OpenAI) -> None:
    with client.chat.completions.stream(model=MODEL, messages=ASK) as stream:
        deltas = [event.delta for event in stream if event.type == "content.delta"]
        final = stream.get_final_completion()

    assert "".join(deltas) == final.choices[0].message.content
    assert final.usage is not None


async def test_sdk__async__answers_and_streams(sandboxed: Gateway, base_url: str) -> None:
    async with openai.AsyncOpenAI(base_url=base_url, api_key=sandboxed.key, max_retries=0) as client:
        whole = await client.chat.completions.create(model=MODEL, messages=ASK)
        stream = await client.chat.completions.create(model=MODEL, messages=ASK, stream=True)
        text = "".join([choice.delta.content or "" async for chunk in stream for choice in chunk.choices])

    assert text == whole.choices[0].message.content


@pytest.mark.parametrize("stream", [False, True])
def test_sdk__tools__calls_and_takes_the_result(client: openai.OpenAI, stream: bool) -> None:
    ask: list[ChatCompletionMessageParam] = [{"role": "user", "content": "The weather in Oslo?"}]
    if stream:
        with client.chat.completions.stream(model=MODEL, messages=ask, tools=[WEATHER]) as events:
            first = events.get_final_completion().choices[0]
    else:
        first = client.chat.completions.create(model=MODEL, messages=ask, tools=[WEATHER]).choices[0]  # type: ignore[assignment]  # the parsed choice is a subclass

    assert first.finish_reason == "tool_calls"
    (call, *_) = first.message.tool_calls or []
    assert call.type == "function"
    assert call.function.name == "get_weather"
    assert isinstance(json.loads(call.function.arguments)["city"], str)

    follow: list[ChatCompletionMessageParam] = [
        *ask,
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.function.name, "arguments": call.function.arguments},
                }
            ],
        },
        {"role": "tool", "tool_call_id": call.id, "content": '{"degrees": 4}'},
    ]
    answer = client.chat.completions.create(model=MODEL, messages=follow, tools=[WEATHER])
    assert answer.choices[0].finish_reason == "stop"
    assert answer.choices[0].message.content


@pytest.mark.parametrize("choice", ["none", "required", "auto"])
def test_sdk__tool_choice__is_obeyed(client: openai.OpenAI, choice: str) -> None:
    answer = client.chat.completions.create(model=MODEL, messages=ASK, tools=[WEATHER], tool_choice=choice)  # type: ignore[call-overload]  # a Literal per case says no more

    assert bool(answer.choices[0].message.tool_calls) is (choice != "none")


def test_sdk__parse_helper__returns_the_model(client: openai.OpenAI) -> None:
    parsed = client.chat.completions.parse(model=MODEL, messages=ASK, response_format=Solution)

    assert isinstance(parsed.choices[0].message.parsed, Solution)


def test_sdk__json_object__is_json(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(
        model=MODEL,
        messages=[{"role": "user", "content": "Answer in json"}],
        response_format={"type": "json_object"},
    )

    assert isinstance(json.loads(answer.choices[0].message.content or ""), dict)


def test_sdk__image_as_data_url__is_accepted(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(
        model=MODEL,
        messages=[
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is this?"},
                    {"type": "image_url", "image_url": {"url": PIXEL, "detail": "low"}},
                ],
            }
        ],
    )

    assert answer.choices[0].message.content


def test_sdk__several_choices_and_stop__are_served(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model=MODEL, messages=ASK, n=3, stop=["\n\n"])

    assert [choice.index for choice in answer.choices] == [0, 1, 2]


def test_sdk__raw_response__shows_the_gateways_headers(client: openai.OpenAI) -> None:
    raw = client.chat.completions.with_raw_response.create(model=MODEL, messages=ASK)

    assert raw.headers["x-svc-provider"] == "openai_compatible"
    assert raw.headers["x-svc-model-used"] == "echo"
    assert raw.headers["x-svc-retry-count"] == "0"
    assert raw.headers["x-svc-cache"] == "skip"
    assert raw.request_id == raw.headers["x-request-id"]
    assert raw.parse().choices[0].message.content


@pytest.mark.parametrize(
    ("model", "error", "code"),
    [
        ("openai_compatible/error-400", openai.BadRequestError, "provider_rejected"),
        ("openai_compatible/error-context-length", openai.BadRequestError, "context_length_exceeded"),
        ("openai_compatible/error-content-filter", openai.BadRequestError, "content_filter"),
        ("openai_compatible/error-quota", openai.InternalServerError, "insufficient_quota"),
        ("openai_compatible/error-401", openai.InternalServerError, "provider_error"),
        ("openai_compatible/error-503", openai.InternalServerError, "provider_unavailable"),
        ("nobody/knows", openai.NotFoundError, "model_not_found"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_sdk__failure__is_the_exception_of_its_status(
    sandboxed: Gateway, model: str, error: type[openai.APIStatusError], code: str, stream: bool
) -> None:
    if code == "model_not_found":
        # A provider that serves every name would hide unknown models, so this project has none.
        sandboxed = sandboxed.service.new_project()
    with sandboxed.openai() as client, pytest.raises(error) as raised:
        client.chat.completions.create(model=model, messages=ASK, stream=stream)

    assert raised.value.code == code
    assert raised.value.request_id


def test_sdk__wrong_key__is_an_authentication_error(base_url: str) -> None:
    with (
        openai.OpenAI(base_url=base_url, api_key="svc_wrong", max_retries=0) as client,
        pytest.raises(openai.AuthenticationError),
    ):
        client.chat.completions.create(model=MODEL, messages=ASK)
