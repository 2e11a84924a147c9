"""Tests the sandbox's answers through the official SDK, so that a real provider's client would accept them too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import openai
import pytest
from openai import OpenAI

from gateway.demo.conversations import OWN_PROMPTS, DemoConversation, read_conversations
from tests.integrations.sandbox.requests import HELLO
from tests.night import cases
from tests.recordings import SHARED_DIR


def test_echo__plain__answers_the_users_words_with_usage(client: OpenAI) -> None:
    answer = client.chat.completions.create(model="sandbox/echo", messages=HELLO)

    assert answer.choices[0].message.content == "Hello there, how are you?"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens > 0


def test_echo__streamed__same_text_and_usage_in_an_extra_last_chunk(client: OpenAI) -> None:
    whole = client.chat.completions.create(model="echo", messages=HELLO)
    chunks = list(
        client.chat.completions.create(
            model="echo", messages=HELLO, stream=True, stream_options={"include_usage": True}
        )
    )

    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content
    assert [bool(chunk.usage) for chunk in chunks].count(True) == 1
    assert chunks[-1].choices == []
    assert chunks[-1].usage == whole.usage


def test_stream__usage_not_requested__has_none(client: OpenAI) -> None:
    chunks = list(client.chat.completions.create(model="echo", messages=HELLO, stream=True))

    assert all(chunk.usage is None and chunk.choices for chunk in chunks)
    assert chunks[-1].choices[0].finish_reason == "stop"


@pytest.mark.parametrize("stream", [False, True])
def test_limits__max_tokens_and_stop__cut_the_answer(client: OpenAI, stream: bool) -> None:
    def ask(**options: Any) -> tuple[str, str | None]:
        if not stream:
            choice = client.chat.completions.create(model="echo", messages=HELLO, **options).choices[0]
            return choice.message.content or "", choice.finish_reason
        chunks = list(client.chat.completions.create(model="echo", messages=HELLO, stream=True, **options))
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
        return text, chunks[-1].choices[0].finish_reason

    assert ask(max_tokens=2) == ("Hello there", "length")
    assert ask(stop=[", how"]) == ("Hello there", "stop")
    assert ask(stop="Hello") == ("", "stop")


def test_n__three_choices__are_numbered(client: OpenAI) -> None:
    answer = client.chat.completions.create(model="echo", messages=HELLO, n=3)

    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert len({choice.message.content for choice in answer.choices}) == 3


def test_seed__same__same_fingerprint(client: OpenAI) -> None:
    prints = {
        client.chat.completions.create(model="echo", messages=HELLO, seed=seed).system_fingerprint for seed in (1, 1, 2)
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


def test_empty__answer__has_no_content(client: OpenAI) -> None:
    answer = client.chat.completions.create(model="empty", messages=HELLO)

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


def _all_conversations() -> list[DemoConversation]:
    shared: Path = SHARED_DIR / "traffic" / "prompts.jsonl"
    files = [OWN_PROMPTS, *([shared] if shared.exists() else [])]
    return [conversation for file in files for conversation in read_conversations(file, limit=None)]


@pytest.mark.parametrize("stream", [False, True])
def test_traffic__every_prompt__is_answered_and_tool_arguments_are_json(client: OpenAI, stream: bool) -> None:
    every = _all_conversations()
    for conversation in cases(every, by_day=every[::10]):
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
