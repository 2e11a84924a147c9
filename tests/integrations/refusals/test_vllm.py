"""Tests what the fake of vLLM refuses, as the official SDK of OpenAI sees it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import OpenAI

from tests.fakes.dialects.openai import FAKES
from tests.fakes.dialects.server import DialectServer, answer_with
from tests.fakes.dialects.story import Story

Json = dict[str, Any]
USER: Json = {"role": "user", "content": "Hello"}
TOOL: Json = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
NAMED: Json = {"type": "function", "function": {"name": "time"}}

# Each request is one that vLLM takes.
GOOD: list[Json] = [
    {},
    {"a_field_of_tomorrow": True, "messages": [{**USER, "another": 1}]},
    {"tools": [TOOL], "tool_choice": "required", "reasoning_effort": "max", "top_k": 3},
    {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "weather"}}},
    {"tool_choice": "none"},
    {"continue_final_message": True, "add_generation_prompt": False},
]
# By rule: what is changed in a request that vLLM takes, and a part of the error.
REFUSED: dict[str, list[tuple[Json, str]]] = {
    "missing field": [({"messages": [{"content": "Hello"}]}, "Field required: messages.0.role")],
    "system message behind the first": [
        ({"messages": [USER, {"role": "system", "content": "Now in French"}]}, "must be at the beginning"),
    ],
    "unknown effort": [({"reasoning_effort": "ultra"}, "'xhigh' or 'max'")],
    "tool that is no function": [({"tools": [TOOL, {"type": "custom", "custom": {"name": "a"}}]}, "tools.1.type")],
    "stream_options without stream": [({"stream_options": {"include_usage": True}}, "when `stream=True`")],
    "top_logprobs without logprobs": [({"top_logprobs": 2}, "`logprobs` must be set to true")],
    "schema that is missing": [({"response_format": {"type": "json_schema"}}, "must be provided")],
    "empty tools": [({"tools": []}, "must not be an empty array")],
    "tool_choice without tools": [({"tool_choice": "auto"}, "`tools` must be set")],
    "unknown tool_choice": [({"tools": [TOOL], "tool_choice": "any"}, "Invalid value for `tool_choice`: any!")],
    "tool_choice of no tool": [({"tools": [TOOL], "tool_choice": NAMED}, "does not match any")],
    "continuation and a new turn": [({"continue_final_message": True}, "Cannot set both")],
}
CASES = [(change, words) for cases in REFUSED.values() for change, words in cases]


@pytest.fixture(params=["vllm", "openai_compatible"])
def client(request: pytest.FixtureRequest, server: DialectServer) -> Iterator[OpenAI]:
    fake = FAKES[request.param]
    server.play(request.param, answer_with(fake, Story(text="ok")))
    access = fake.credentials(server.base_url(request.param))
    with OpenAI(base_url=access.base_url, api_key=access.secret, max_retries=0) as sdk:
        yield sdk


def ask(client: OpenAI, change: Json) -> Any:
    body = {"model": "qwen3", "messages": [USER], **change}
    return client.chat.completions.create(model="qwen3", messages=[], extra_body=body)


@pytest.mark.parametrize("change", GOOD, ids=str)
def test_request__that_vllm_takes__answered(client: OpenAI, change: Json) -> None:
    assert ask(client, change).choices[0].message.content == "ok"


@pytest.mark.parametrize(("change", "words"), CASES, ids=str)
def test_request__that_vllm_refuses__raised_by_the_sdk_in_its_words(client: OpenAI, change: Json, words: str) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        ask(client, change)
    assert words in raised.value.message
    assert raised.value.type == "BadRequestError"
    assert raised.value.code == "400"
