"""The official openai SDK, unchanged, sees the same answer whichever provider gives it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletionToolParam
from pydantic import BaseModel

from integrations.providers.usage import Usage
from tests.fakes.dialects.registry import FAKES
from tests.fakes.dialects.rules.thinkers import WANTING_REASONING
from tests.fakes.dialects.story import Call, Story
from tests.gateway.every_provider import ASK, PROVIDERS, dropped
from tests.gateway.stage import Stage, model_of, upstream_model_of

TOOLED = [provider for provider in PROVIDERS if FAKES[provider].can.tools]
THINKING = [provider for provider in PROVIDERS if FAKES[provider].can.reasoning]
SIGNING = [provider for provider in PROVIDERS if FAKES[provider].can.signatures]
SEEING = [provider for provider in PROVIDERS if FAKES[provider].can.images]
OSLO = Call("callAAA01", "get_weather", {"city": "Oslo"})
PARIS = Call("callBBB02", "get_weather", {"city": "Paris"})
SIGNATURE = "RXVyZWthISBzaWduZWQgYnkgdGhlIHZlbmRvcg=="
WEATHER: ChatCompletionToolParam = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
STORIES = {
    "text": Story(text="Grüße 👋,\nthe weather is fine."),
    "length": Story(text="Once upon", finish="length"),
    "filtered": Story(text="Well", finish="content_filter"),
    "empty": Story(text=""),
    "call": Story(calls=(OSLO,), finish="tool_calls"),
    "text and call": Story(text="Let me see.", calls=(OSLO,), finish="tool_calls"),
    "parallel calls": Story(calls=(OSLO, PARIS), finish="tool_calls"),
    "reasoning": Story(text="Fine.", reasoning="It is summer.", usage=Usage(30, 20)),
    "cached": Story(text="Fine.", usage=Usage(prompt_tokens=100, completion_tokens=20, cache_read_tokens=60)),
}
# Signatures are opaque and differ by vendor, as do fields that only one vendor has; the rest is equal for all.
OPAQUE = ("reasoning_details", "extra_content", "provider_specific_fields")
# Fields that look-alikes add to the dialect under their own names are passed on, beside the common ones.
VENDORS_OWN = ("reasoning", "x_groq")
# These fields identify an answer, or say how OpenAI's own API served it.
VARYING = ("id", "created", "model", "system_fingerprint", "service_tier")


@pytest.fixture(scope="module")
def client(stage: Stage) -> Iterator[openai.OpenAI]:
    with stage.gateway.openai() as made:
        yield made


def is_expressible(provider: str, story: Story) -> bool:
    """Returns whether the dialect can express the story."""
    can = FAKES[provider].can
    return (
        (can.tools or not story.calls)
        and (can.parallel_tools or len(story.calls) < 2)
        and (can.reasoning or not story.reasoning)
        and (can.cached_usage or not story.usage.cache_read_tokens)
    )


EXPRESSIBLE = [
    (provider, name) for provider in PROVIDERS for name, story in STORIES.items() if is_expressible(provider, story)
]


def pruned(value: Any) -> Any:
    """Returns the value without empty fields and without those that differ by nature."""
    if isinstance(value, dict):
        dropped = (*VARYING, *OPAQUE, *VENDORS_OWN)
        return {name: pruned(item) for name, item in value.items() if item is not None and name not in dropped}
    if isinstance(value, list):
        return [pruned(item) for item in value]
    return value


def usage_of(story: Story) -> dict[str, Any]:
    counts = story.usage
    return {
        "prompt_tokens": counts.prompt_tokens,
        "completion_tokens": counts.completion_tokens,
        "total_tokens": counts.total_tokens,
        "cached_tokens": counts.cache_read_tokens,
    }


def with_plain_usage(dumped: dict[str, Any]) -> dict[str, Any]:
    """Returns the answer with the counts of its usage and, of the details, only the cached tokens: the others differ by
    provider."""
    usage = dumped.pop("usage")
    cached = (usage.pop("prompt_tokens_details", None) or {}).get("cached_tokens") or 0
    counts = {name: usage[name] for name in ("prompt_tokens", "completion_tokens", "total_tokens")}
    return {**dumped, "usage": {**counts, "cached_tokens": cached}}


def message_of(story: Story) -> dict[str, Any]:
    """Returns the story's message in OpenAI's dialect; arguments are objects, since spaces in their text differ."""
    message: dict[str, Any] = {"role": "assistant"}
    if story.text or not story.calls:
        message["content"] = story.text
    if story.reasoning:
        message["reasoning_content"] = story.reasoning
    if story.calls:
        message["tool_calls"] = [
            {"type": "function", "function": {"name": call.name, "arguments": call.arguments}} for call in story.calls
        ]
    return message


def with_read_arguments(message: dict[str, Any]) -> dict[str, Any]:
    for call in message.get("tool_calls") or ():
        call.pop("index", None)  # Mistral, OpenRouter and others number the calls of a whole answer too.
        call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    return message


def arguments_for(provider: str, story: Story) -> dict[str, Any]:
    tools = {"tools": [WEATHER]} if story.calls else {}
    return {"model": model_of(provider), "messages": ASK, **tools}


@pytest.mark.parametrize(("provider", "name"), EXPRESSIBLE)
def test_sdk__whole__the_same_whoever_answers(stage: Stage, client: openai.OpenAI, provider: str, name: str) -> None:
    story = STORIES[name]
    stage.play(provider, story)

    raw = client.chat.completions.with_raw_response.create(**arguments_for(provider, story))

    answer = raw.parse()
    dumped = with_plain_usage(pruned(answer.model_dump()))
    (choice,) = dumped["choices"]
    choice["message"] = with_read_arguments(choice["message"])
    assert dumped == {
        "object": "chat.completion",
        "choices": [{"index": 0, "finish_reason": story.finish, "message": message_of(story)}],
        "usage": usage_of(story),
    }
    assert answer.id
    assert answer.created > 1_000_000_000
    assert answer.model in (story.model, upstream_model_of(provider))
    ids = [call.id for call in answer.choices[0].message.tool_calls or ()]
    assert all(ids)
    assert len(set(ids)) == len(ids)
    assert_headers(raw.headers, provider)


def assert_headers(headers: Any, provider: str) -> None:
    assert headers["x-svc-provider"] == provider
    assert headers["x-svc-model-used"] == upstream_model_of(provider)
    assert headers["x-svc-retry-count"] == "0"
    assert "x-svc-fallback-used" not in headers
    assert "x-svc-original-model" not in headers
    assert not dropped(headers)


@pytest.mark.parametrize(("provider", "name"), EXPRESSIBLE)
def test_sdk__streamed__the_same_whoever_answers(stage: Stage, client: openai.OpenAI, provider: str, name: str) -> None:
    story = STORIES[name]
    stage.play(provider, story)

    raw = client.chat.completions.with_raw_response.create(**arguments_for(provider, story), stream=True)

    chunks = list(raw.parse())
    assert_headers(raw.headers, provider)
    assert len({(chunk.id, chunk.created, chunk.model) for chunk in chunks}) == 1
    *before, last = [pruned(chunk.model_dump()) for chunk in chunks]
    assert with_plain_usage(last) == {
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "finish_reason": story.finish, "delta": {}}],
        "usage": usage_of(story),
    }
    for chunk in before:
        (choice,) = chunk["choices"]
        assert set(chunk) == {"object", "choices"}
        assert set(choice) == {"index", "delta"}
        assert set(choice["delta"]) <= {"role", "content", "reasoning_content", "tool_calls"}
    assert before[0]["choices"][0]["delta"]["role"] == "assistant"
    assert joined(choice["delta"] for chunk in before for choice in chunk["choices"]) == message_of(story)


def joined(deltas: Iterable[dict[str, Any]]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": ""}
    calls: dict[int, dict[str, Any]] = {}
    for delta in deltas:
        for name in ("content", "reasoning_content"):
            if name in delta:
                message[name] = message.get(name, "") + delta[name]
        for fragment in delta.get("tool_calls", ()):
            call = calls.setdefault(fragment["index"], {"type": "function", "function": {"name": "", "arguments": ""}})
            for name, value in fragment["function"].items():
                call["function"][name] += value
    if calls:
        message["tool_calls"] = [calls[index] for index in sorted(calls)]
        if not message["content"]:
            del message["content"]
    return with_read_arguments(message)


@pytest.mark.parametrize("provider", TOOLED)
@pytest.mark.parametrize("stream", [False, True])
def test_tool_loop__call_result_answer__runs_on_every_provider(
    stage: Stage, client: openai.OpenAI, provider: str, stream: bool
) -> None:
    """The answer's message is appended as the SDK returned it, as agents do."""
    calls = (OSLO, PARIS) if FAKES[provider].can.parallel_tools else (OSLO,)
    thought = "Both have to be looked up." if provider in WANTING_REASONING else ""
    first_story = Story(calls=calls, reasoning=thought, finish="tool_calls")
    stage.play(provider, first_story, Story(text="18 and 24 degrees."))
    messages: list[Any] = list(ASK)

    for _ in range(2):
        choice = choice_of(client, stream=stream, model=model_of(provider), messages=messages, tools=[WEATHER])
        messages.append(choice.message.model_dump(exclude_none=True) if stream else choice.message)
        for call in choice.message.tool_calls or ():
            city = json.loads(call.function.arguments)["city"]
            messages.append({"role": "tool", "tool_call_id": call.id, "content": f"degrees of {city}"})

    assert choice.finish_reason == "stop"
    assert choice.message.content == "18 and 24 degrees."
    first, second = stage.requests_of(provider)
    assert first.stream is second.stream is stream
    assert first.tools == second.tools == ("get_weather",)
    assert [(call.name, dict(call.arguments)) for call in second.calls] == [(c.name, c.arguments) for c in calls]
    for call, (names, text), expected in zip(second.calls, second.results, calls, strict=True):
        assert names in (call.id, call.name)
        assert f"degrees of {expected.arguments['city']}" in text


def choice_of(client: openai.OpenAI, *, stream: bool, **arguments: Any) -> Any:
    if not stream:
        return client.chat.completions.create(**arguments).choices[0]
    with client.chat.completions.stream(**arguments) as events:
        return events.get_final_completion().choices[0]


@pytest.mark.parametrize("provider", SIGNING)
@pytest.mark.parametrize("calls", [(), (OSLO,)], ids=["text", "call"])
@pytest.mark.parametrize("stream", [False, True])
def test_signed_reasoning__appended_as_the_sdk_gave_it__comes_back_to_its_vendor(
    stage: Stage, client: openai.OpenAI, provider: str, calls: tuple[Call, ...], stream: bool
) -> None:
    story = Story(
        text="" if calls else "Fine.",
        reasoning="It is summer.",
        signature=SIGNATURE,
        calls=calls,
        finish="tool_calls" if calls else "stop",
    )
    stage.play(provider, story, Story(text="Good."))

    choice = choice_of(client, stream=stream, model=model_of(provider), messages=ASK, tools=[WEATHER])
    message = choice.message.model_dump(exclude_none=True) if stream else choice.message
    more: list[Any] = [
        {"role": "tool", "tool_call_id": call.id, "content": "18 degrees"} for call in choice.message.tool_calls or ()
    ]
    more = more or [{"role": "user", "content": "And tomorrow?"}]
    history: list[Any] = [*ASK, message, *more]
    client.chat.completions.create(model=model_of(provider), messages=history, tools=[WEATHER])

    assert choice.message.reasoning_content == "It is summer."
    assert stage.requests_of(provider)[1].signatures == (SIGNATURE,)


class Report(BaseModel):
    city: str
    degrees: int


@pytest.mark.parametrize("provider", [provider for provider in PROVIDERS if FAKES[provider].can.schema])
def test_sdk__parse__schema_goes_out_and_the_object_comes_back(
    stage: Stage, client: openai.OpenAI, provider: str
) -> None:
    stage.play(provider, Story(text='{"city": "Oslo", "degrees": 18}'))

    answer = client.chat.completions.parse(model=model_of(provider), messages=ASK, response_format=Report)

    assert answer.choices[0].message.parsed == Report(city="Oslo", degrees=18)
    (received,) = stage.requests_of(provider)
    assert received.schema is not None
    assert set(received.schema["properties"]) == {"city", "degrees"}


def test_all_providers__called_at_once__each_gives_its_own_answer(stage: Stage, client: openai.OpenAI) -> None:
    """One adapter serves all requests of a worker, so nothing of one stream may reach another."""
    texts = {provider: f"I am {provider}. " * 20 for provider in PROVIDERS}
    for provider, text in texts.items():
        stage.play(provider, Story(text=text, pieces=40))

    def ask(provider: str) -> tuple[str, str]:
        chunks = client.chat.completions.create(model=model_of(provider), messages=ASK, stream=True)
        return provider, "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)

    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(ask, PROVIDERS * 4))

    assert len(answers) == 4 * len(PROVIDERS)
    assert dict(answers) == texts
    assert all(texts[provider] == text for provider, text in answers)
