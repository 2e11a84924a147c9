"""Tests the sandbox through the official SDK, so that a real provider's client would accept its answers too."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
import requests
from aiohttp import web
from openai import OpenAI
from pydantic import BaseModel

from gateway.demo.conversations import OWN_PROMPTS, Conversation, read_conversations
from integrations.sandbox.server import Sandbox
from tests.patience import PATIENCE_SECONDS
from tests.recordings import SHARED_DIR

_HELLO: Any = [{"role": "user", "content": "Hello there, how are you?"}]


@pytest.fixture(scope="module")
def sandbox_url() -> Iterator[str]:
    """Yields the address of a server that runs on an event loop of its own in a thread."""
    loop = asyncio.new_event_loop()
    runner = web.AppRunner(Sandbox().application(), handler_cancellation=True)

    async def start() -> str:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{runner.addresses[0][1]}/v1"

    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield asyncio.run_coroutine_threadsafe(start(), loop).result(PATIENCE_SECONDS)
    asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(PATIENCE_SECONDS)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.fixture
def client(sandbox_url: str) -> Iterator[OpenAI]:
    with OpenAI(base_url=sandbox_url, api_key="none", max_retries=0, timeout=PATIENCE_SECONDS) as client:
        yield client


def _tool(parameters: dict[str, Any], name: str = "look_up", **more: Any) -> Any:
    return {"type": "function", "function": {"name": name, "parameters": parameters, **more}}


def _city_tool(name: str = "get_weather") -> Any:
    return _tool({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}, name)


def test_echo__plain__answers_the_users_words_with_usage(client: OpenAI) -> None:
    answer = client.chat.completions.create(model="sandbox/echo", messages=_HELLO)

    assert answer.choices[0].message.content == "Hello there, how are you?"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens > 0


def test_echo__streamed__same_text_and_usage_in_an_extra_last_chunk(client: OpenAI) -> None:
    whole = client.chat.completions.create(model="echo", messages=_HELLO)
    chunks = list(
        client.chat.completions.create(
            model="echo", messages=_HELLO, stream=True, stream_options={"include_usage": True}
        )
    )

    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content
    assert [bool(chunk.usage) for chunk in chunks].count(True) == 1
    assert chunks[-1].choices == []
    assert chunks[-1].usage == whole.usage


def test_stream__usage_not_requested__has_none(client: OpenAI) -> None:
    chunks = list(client.chat.completions.create(model="echo", messages=_HELLO, stream=True))

    assert all(chunk.usage is None and chunk.choices for chunk in chunks)
    assert chunks[-1].choices[0].finish_reason == "stop"


@pytest.mark.parametrize("stream", [False, True])
def test_limits__max_tokens_and_stop__cut_the_answer(client: OpenAI, stream: bool) -> None:
    def ask(**options: Any) -> tuple[str, str | None]:
        if not stream:
            choice = client.chat.completions.create(model="echo", messages=_HELLO, **options).choices[0]
            return choice.message.content or "", choice.finish_reason
        chunks = list(client.chat.completions.create(model="echo", messages=_HELLO, stream=True, **options))
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
        return text, chunks[-1].choices[0].finish_reason

    assert ask(max_tokens=2) == ("Hello there", "length")
    assert ask(stop=[", how"]) == ("Hello there", "stop")
    assert ask(stop="Hello") == ("", "stop")


def test_n__three_choices__are_numbered(client: OpenAI) -> None:
    answer = client.chat.completions.create(model="echo", messages=_HELLO, n=3)

    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert len({choice.message.content for choice in answer.choices}) == 3


def test_seed__same__same_fingerprint(client: OpenAI) -> None:
    prints = {
        client.chat.completions.create(model="echo", messages=_HELLO, seed=seed).system_fingerprint
        for seed in (1, 1, 2)
    }

    assert len(prints) == 2


def test_prefix__repeated__is_counted_as_cached(client: OpenAI) -> None:
    system: Any = {"role": "system", "content": "You remember what was said before. " * 60}

    def cached(question: str) -> int:
        answer = client.chat.completions.create(model="echo", messages=[system, {"role": "user", "content": question}])
        assert answer.usage is not None
        assert answer.usage.prompt_tokens_details is not None
        return answer.usage.prompt_tokens_details.cached_tokens or 0

    assert cached("First question") == 0
    assert cached("Second question") > 0


def test_tools__offered__called_with_arguments_then_answered_in_text(client: OpenAI) -> None:
    messages = [*_HELLO]
    first = client.chat.completions.create(model="echo", messages=messages, tools=[_city_tool()])
    choice = first.choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content is None
    (call,) = choice.message.tool_calls or []
    assert call.type == "function"
    assert isinstance(json.loads(call.function.arguments)["city"], str)

    messages += [choice.message, {"role": "tool", "tool_call_id": call.id, "content": "21 degrees"}]
    second = client.chat.completions.create(model="echo", messages=messages, tools=[_city_tool()])

    assert second.choices[0].finish_reason == "stop"
    assert "21 degrees" in (second.choices[0].message.content or "")


def test_tools__two_named_by_the_user__called_in_parallel_unless_switched_off(client: OpenAI) -> None:
    tools = [_city_tool("find_hotel"), _city_tool("find_train")]
    messages: Any = [{"role": "user", "content": "Please find a hotel and find a train."}]

    parallel = client.chat.completions.create(model="echo", messages=messages, tools=tools).choices[0].message
    single = client.chat.completions.create(model="echo", messages=messages, tools=tools, parallel_tool_calls=False)

    calls = parallel.tool_calls or []
    assert [call.function.name for call in calls if call.type == "function"] == ["find_hotel", "find_train"]
    assert len({call.id for call in calls}) == 2
    assert len(single.choices[0].message.tool_calls or []) == 1


def test_tools__streamed__pieces_make_up_the_same_calls(client: OpenAI) -> None:
    tools = [_city_tool("find_hotel"), _city_tool("find_train")]
    messages: Any = [{"role": "user", "content": "Please find a hotel and find a train."}]
    whole = client.chat.completions.create(model="echo", messages=messages, tools=tools).choices[0].message

    with client.chat.completions.stream(model="echo", messages=messages, tools=tools) as stream:
        final = stream.get_final_completion().choices[0]

    assert final.finish_reason == "tool_calls"
    assert [(call.id, call.function.name, call.function.arguments) for call in final.message.tool_calls or []] == [
        (call.id, call.function.name, call.function.arguments)
        for call in whole.tool_calls or []
        if call.type == "function"
    ]


@pytest.mark.parametrize(
    ("choice", "called"),
    [
        ("none", []),
        ("auto", ["first_tool"]),
        ("required", ["first_tool"]),
        ({"type": "function", "function": {"name": "other_tool"}}, ["other_tool"]),
        (
            {
                "type": "allowed_tools",
                "allowed_tools": {
                    "mode": "auto",
                    "tools": [{"type": "function", "function": {"name": "other_tool"}}],
                },
            },
            ["other_tool"],
        ),
    ],
)
def test_tool_choice__each_form__is_obeyed(client: OpenAI, choice: Any, called: list[str]) -> None:
    answer = client.chat.completions.create(
        model="echo", messages=_HELLO, tools=[_city_tool("first_tool"), _city_tool("other_tool")], tool_choice=choice
    )

    calls = answer.choices[0].message.tool_calls or []
    assert [call.function.name for call in calls if call.type == "function"] == called


def test_tool_choice__unknown_function__is_rejected(client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="tool_choice"):
        client.chat.completions.create(
            model="echo",
            messages=_HELLO,
            tools=[_city_tool()],
            tool_choice={"type": "function", "function": {"name": "absent"}},
        )


class _Author(BaseModel):
    name: str
    year: int | None


class _Book(BaseModel):
    title: str
    authors: list[_Author]
    price: float


def test_response_format__pydantic_model__parses(client: OpenAI) -> None:
    answer = client.chat.completions.parse(model="echo", messages=_HELLO, response_format=_Book)

    book = answer.choices[0].message.parsed
    assert book is not None
    assert book.authors


def test_response_format__json_object__is_an_object(client: OpenAI) -> None:
    answer = client.chat.completions.create(model="echo", messages=_HELLO, response_format={"type": "json_object"})

    assert isinstance(json.loads(answer.choices[0].message.content or ""), dict)


@pytest.mark.parametrize(
    ("model", "error"),
    [
        ("error-400", openai.BadRequestError),
        ("error-401", openai.AuthenticationError),
        ("error-403", openai.PermissionDeniedError),
        ("error-404", openai.NotFoundError),
        ("error-422", openai.UnprocessableEntityError),
        ("error-429", openai.RateLimitError),
        ("error-500", openai.InternalServerError),
        ("error-503", openai.InternalServerError),
    ],
)
def test_error_models__status__is_the_sdks_error(
    client: OpenAI, model: str, error: type[openai.APIStatusError]
) -> None:
    with pytest.raises(error) as caught:
        client.chat.completions.create(model=model, messages=_HELLO)

    assert caught.value.status_code == int(model.removeprefix("error-"))
    assert caught.value.response.headers.get("retry-after") == ("1" if model == "error-429" else None)


def test_flaky__same_request_again__is_answered(client: OpenAI) -> None:
    with pytest.raises(openai.InternalServerError):
        client.chat.completions.create(model="flaky", messages=_HELLO)

    answer = client.chat.completions.create(model="flaky", messages=_HELLO)

    assert answer.choices[0].finish_reason == "stop"


def test_half__many_requests__half_fail_and_fail_again(client: OpenAI) -> None:
    def fails(number: int) -> bool:
        try:
            client.chat.completions.create(model="half", messages=[{"role": "user", "content": f"number {number}"}])
        except openai.InternalServerError:
            return True
        return False

    first, again = [fails(number) for number in range(40)], [fails(number) for number in range(40)]

    assert again == first
    assert 10 <= sum(first) <= 30


@pytest.mark.parametrize("stream", [False, True])
def test_mirror__conversation__is_the_answer(client: OpenAI, stream: bool) -> None:
    messages: Any = [{"role": "system", "content": "Be {{brief}}."}, {"role": "user", "content": "Grüß dich"}]

    answer = client.chat.completions.create(model="mirror", messages=messages, stream=stream)

    text = (
        "".join(chunk.choices[0].delta.content or "" for chunk in answer if chunk.choices)
        if isinstance(answer, openai.Stream)
        else answer.choices[0].message.content or ""
    )
    assert json.loads(text) == messages


def test_error_mid_stream__after_two_chunks__is_an_error_event(client: OpenAI) -> None:
    received = []
    with pytest.raises(openai.APIError, match="had an error"):
        for chunk in client.chat.completions.create(model="error-mid-stream", messages=_HELLO, stream=True):
            received.append(chunk.choices[0].delta.content or "")

    assert "".join(received) == "Hello there"


@pytest.mark.parametrize("prompt", ["Hello", "", "Hello there", "x " * 50])
def test_mid_stream_models__any_prompt__never_a_whole_answer(client: OpenAI, prompt: str) -> None:
    messages: Any = [{"role": "user", "content": prompt}]
    for model, error in (("error-mid-stream", "had an error"), ("cut-mid-stream", r"(?i)peer closed|connection")):
        received: list[Any] = []
        with pytest.raises(Exception, match=error):
            received.extend(client.chat.completions.create(model=model, messages=messages, stream=True))
        assert not any(choice.finish_reason for chunk in received for choice in chunk.choices)

    with pytest.raises((openai.APITimeoutError, httpx.ReadTimeout)):
        list(
            client.with_options(timeout=0.3, max_retries=0).chat.completions.create(
                model="hang-mid-stream", messages=messages, stream=True
            )
        )


def test_cut_mid_stream__connection__drops(client: OpenAI) -> None:
    stream = client.chat.completions.create(model="cut-mid-stream", messages=_HELLO, stream=True)

    # The SDK lets its HTTP client's own error through once the stream has begun.
    with pytest.raises(Exception, match=r"(?i)peer closed|connection"):
        list(stream)


def test_hang__no_answer__client_times_out(client: OpenAI) -> None:
    with pytest.raises(openai.APITimeoutError):
        client.with_options(timeout=0.3).chat.completions.create(model="hang", messages=_HELLO)


def test_hang_half__many_requests__answered_or_not_by_their_bytes(client: OpenAI) -> None:
    url = f"{client.base_url}chat/completions"
    conversations = [[{"role": "user", "content": f"number {number}"}] for number in range(8)]
    bodies = [json.dumps({"model": "hang-half", "messages": messages}).encode() for messages in conversations]
    hanging = [body for body in bodies if hashlib.sha256(body).digest()[0] % 2]

    for body in bodies:
        if body in hanging:
            with pytest.raises(httpx.ReadTimeout):
                httpx.post(url, content=body, timeout=0.3)
        else:
            assert httpx.post(url, content=body, timeout=PATIENCE_SECONDS).status_code == 200
    assert 0 < len(hanging) < len(bodies)


def test_empty__answer__has_no_content(client: OpenAI) -> None:
    answer = client.chat.completions.create(model="empty", messages=_HELLO)

    assert answer.choices[0].message.content == ""
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 0


def test_parts__image_audio_and_document__are_accepted(client: OpenAI) -> None:
    parts: Any = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "document_url", "document_url": {"url": "https://example.com/a.pdf"}},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,AAAA"}},
    ]

    answer = client.chat.completions.create(model="echo", messages=[{"role": "user", "content": parts}])

    assert (answer.choices[0].message.content or "").startswith("What is this?")


def test_models__listed__with_every_behaviour(client: OpenAI) -> None:
    names = {model.id for model in client.models.list()}

    assert {"echo", "slow", "flaky", "error-503", "error-mid-stream", "hang", "empty"} <= names


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"messages": []}', b'{"messages": "x"}', b'{"messages": [1]}'])
def test_malformed__body__is_a_400(sandbox_url: str, body: bytes) -> None:
    response = requests.post(f"{sandbox_url}/chat/completions", data=body, timeout=PATIENCE_SECONDS)

    assert response.status_code == 400
    assert response.json()["error"]["type"] == "invalid_request_error"


def _all_conversations() -> list[Conversation]:
    shared: Path = SHARED_DIR / "traffic" / "prompts.jsonl"
    files = [OWN_PROMPTS, *([shared] if shared.exists() else [])]
    return [conversation for file in files for conversation in read_conversations(file, limit=None)]


@pytest.mark.parametrize("stream", [False, True])
def test_traffic__every_prompt__is_answered_and_tool_arguments_are_json(client: OpenAI, stream: bool) -> None:
    for conversation in _all_conversations():
        options: dict[str, Any] = {"model": "echo", "messages": conversation.messages, **conversation.options}
        if stream:
            chunks = list(client.chat.completions.create(stream=True, **options))
            finished = {choice.finish_reason for chunk in chunks for choice in chunk.choices}
            assert finished & {"stop", "length", "tool_calls"}, conversation.name
            continue
        message = client.chat.completions.create(**options).choices[0].message
        for call in message.tool_calls or []:
            assert call.type == "function"
            assert isinstance(json.loads(call.function.arguments), dict), conversation.name
