"""Tests what the fake of OpenAI's chat completions refuses, as the official SDK sees it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import AzureOpenAI, OpenAI

from tests.fakes.dialects.openai import FAKES
from tests.fakes.dialects.rules.openai import CHAT
from tests.fakes.dialects.server import DialectServer, answer_with
from tests.fakes.dialects.story import Story

Json = dict[str, Any]
OBJECT: Json = {"type": "object", "properties": {"city": {"type": "string"}}}
CLOSED: Json = {**OBJECT, "required": ["city"], "additionalProperties": False}
USER: Json = {"role": "user", "content": "Hello"}
CALL: Json = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
ASKED: Json = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT: Json = {"role": "tool", "tool_call_id": "call_1", "content": "18"}
IMAGE: Json = {"type": "image_url", "image_url": {"url": "https://files.test/a.png"}}


def tool(**fields: Any) -> Json:
    return {"type": "function", "function": {"name": "weather", "parameters": OBJECT, **fields}}


def schema(**fields: Any) -> Json:
    return {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, **fields}}


# Each request is one that OpenAI takes.
GOOD: list[Json] = [
    {},
    {"tools": [tool()], "tool_choice": "required", "parallel_tool_calls": False, "max_tokens": 7, "temperature": 0.5},
    {"messages": [USER, ASKED, RESULT], "tools": [tool(strict=True, parameters=CLOSED)]},
    {"messages": [{"role": "user", "content": [{"type": "text", "text": "Look"}, IMAGE]}]},
    {"model": "gpt-5-mini", "max_completion_tokens": 20, "reasoning_effort": "minimal", "temperature": 1},
    {"model": "gpt-5.4", "tools": [tool()], "temperature": 0.2},
    {"model": "gpt-5.6", "tools": [tool()], "reasoning_effort": "none"},
    {"response_format": schema(schema=CLOSED)},
    {"response_format": {"type": "json_object"}, "messages": [{"role": "user", "content": "Answer in JSON."}]},
    {"stream": True, "stream_options": {"include_usage": True}, "store": True, "metadata": {"a": "b"}},
    {"messages": [USER, {"role": "assistant", "content": ""}, USER]},
    {"messages": [USER, {**ASKED, "tool_calls": [{**CALL, "index": 0}]}, RESULT], "tools": [tool()]},
]
# By rule: what is changed in a request that OpenAI takes, and a part of the error.
REFUSED: dict[str, list[tuple[Json, str]]] = {
    "unknown field": [
        ({"thinking": {"type": "enabled"}}, "Unknown parameter: 'thinking'."),
        ({"messages": [{**USER, "reasoning_content": "x"}]}, "'messages[0].reasoning_content'"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {}}]}]},
         "'messages[0].content[0].cache_control'"),
        ({"messages": [{"role": "user", "content": [{**IMAGE, "image_url": {"url": "u", "format": "png"}}]}]},
         "'messages[0].content[0].image_url.format'"),
        ({"messages": [USER, {**ASKED, "tool_calls": [{**CALL, "extra_content": {}}]}, RESULT]},
         "'messages[1].tool_calls[0].extra_content'"),
        ({"tools": [{**tool(), "defer_loading": True}]}, "'tools[0].defer_loading'"),
        ({"tools": [tool(input_examples=[])]}, "'tools[0].function.input_examples'"),
        ({"response_format": schema(schema=CLOSED, kind="x")}, "'response_format.json_schema.kind'"),
        ({"tools": [tool()], "tool_choice": {"type": "function", "function": {"name": "weather"}, "x": 1}},
         "'tool_choice.x'"),
        ({"stream": True, "stream_options": {"usage": True}}, "'stream_options.usage'"),
    ],
    "missing field": [
        ({"messages": [{"content": "Hello"}]}, "'messages[0].role'"),
        ({"messages": [{"role": "user", "content": [{"text": "a"}]}]}, "'messages[0].content[0].type'"),
        ({"tools": [{"type": "function"}]}, "'tools[0].function'"),
        ({"tools": [{"type": "function", "function": {}}]}, "'tools[0].function.name'"),
        ({"response_format": {"type": "json_schema", "json_schema": {}}}, "'response_format.json_schema.name'"),
    ],
    "empty list": [
        ({"messages": []}, "Invalid 'messages': empty array"),
        ({"tools": []}, "Invalid 'tools': empty array"),
        ({"messages": [{"role": "user", "content": []}]}, "'messages[0].content'"),
        ({"messages": [USER, {"role": "assistant", "content": "a", "tool_calls": []}]}, "'messages[1].tool_calls'"),
    ],
    "long list": [
        ({"stop": ["a", "b", "c", "d", "e"]}, "maximum length 4, but got an array with length 5"),
        ({"tools": [tool(name=f"t{number}") for number in range(129)]}, "maximum length 128"),
    ],
    "value below its bound": [
        ({"n": 0}, "Invalid 'n': integer below minimum value. Expected a value >= 1, but got 0"),
        ({"max_completion_tokens": 0}, "Invalid 'max_completion_tokens'"),
        ({"presence_penalty": -3}, "Invalid 'presence_penalty': decimal below"),
    ],
    "value above its bound": [
        ({"n": 129}, "Expected a value <= 128"),
        ({"temperature": 2.5}, "Invalid 'temperature': decimal above"),
        ({"logprobs": True, "top_logprobs": 21}, "Invalid 'top_logprobs'"),
    ],
    "unknown role": [({"messages": [{"role": "model", "content": "a"}]}, "'function', 'tool', and 'developer'")],
    "role that the model lacks": [
        ({"model": "o1-mini", "messages": [{"role": "system", "content": "a"}, USER]}, "does not support 'system'")
    ],
    "no content": [
        ({"messages": [{"role": "user", "content": None}]}, "expected a string, got null"),
        ({"messages": [USER, {"role": "assistant", "content": None}]}, "expected a string, got null"),
    ],
    "image beside the user": [
        ({"messages": [USER, ASKED, {**RESULT, "content": [IMAGE]}]}, "this message with role 'tool'"),
        ({"messages": [{"role": "system", "content": [IMAGE]}, USER]}, "this message with role 'system'"),
    ],
    "orphaned result": [
        ({"messages": [USER, RESULT]}, "must be a response to a preceeding message"),
        ({"messages": [USER, ASKED, RESULT, {**RESULT, "tool_call_id": "call_2"}]}, "'tool_calls'"),
        ({"messages": [USER, ASKED, RESULT, USER, RESULT]}, "'tool_calls'"),
    ],
    "call without result": [
        ({"messages": [USER, ASKED]}, "did not have response messages: call_1"),
        ({"messages": [USER, ASKED, USER]}, "did not have response messages: call_1"),
        ({"messages": [USER, {**ASKED, "tool_calls": [CALL, {**CALL, "id": "b"}]}, RESULT]}, "messages: b"),
    ],
    "name with wrong characters": [
        ({"tools": [tool(name="a.b")]}, "Invalid 'tools[0].function.name': string does not match pattern"),
        ({"messages": [{**USER, "name": "Ada Lovelace"}]}, "Invalid 'messages[0].name'"),
        ({"response_format": schema(name="a b", schema=CLOSED)}, "Invalid 'response_format.json_schema.name'"),
    ],
    "long name": [
        ({"tools": [tool(name="n" * 65)]}, "maximum length 64, but got a string with length 65"),
        ({"messages": [USER, {**ASKED, "tool_calls": [{**CALL, "id": "c" * 41}]},
                       {**RESULT, "tool_call_id": "c" * 41}]}, "'messages[1].tool_calls[0].id'"),
    ],
    "schema of a function": [
        ({"tools": [tool(parameters={"type": "object"})]}, "In context=(), object schema missing properties"),
        ({"tools": [tool(parameters={"type": "string"})]}, "got 'type: \"string\"'"),
        ({"tools": [tool(parameters={"type": "object", "properties": {"a": {"type": "array"}}})]},
         "In context=('properties', 'a'), array schema missing items"),
        ({"tools": [tool(strict=True)]}, "'additionalProperties' is required to be supplied and to be false"),
        ({"tools": [tool(strict=True, parameters={**CLOSED, "required": []})]}, "Missing 'city'"),
    ],
    "open schema of a strict answer": [
        ({"response_format": schema(schema=OBJECT)}, "Invalid schema for response_format 'reply': In context=()"),
        ({"response_format": schema(schema={**CLOSED, "properties": {"city": OBJECT}})}, "('properties', 'city')"),
    ],
    "answer in JSON without the word": [({"response_format": {"type": "json_object"}}, "must contain the word 'json'")],
    "tool_choice without tools": [({"tool_choice": "auto"}, "'tool_choice' is only allowed when 'tools'")],
    "parallel_tool_calls without tools": [({"parallel_tool_calls": False}, "only allowed when 'tools'")],
    "function_call without functions": [({"function_call": "auto"}, "only allowed when 'functions'")],
    "stream_options without stream": [({"stream_options": {"include_usage": True}}, "when 'stream' is enabled")],
    "metadata without store": [({"metadata": {"a": "b"}}, "when 'store' is enabled")],
    "limit by its old name": [
        ({"model": "gpt-5-mini", "max_tokens": 20}, "Use 'max_completion_tokens' instead"),
        ({"model": "o3", "max_tokens": 20}, "Use 'max_completion_tokens' instead"),
    ],
    "sampling at a model that reasons": [
        ({"model": "gpt-5", "temperature": 0.2}, "'temperature' does not support 0.2 with this model"),
        ({"model": "gpt-5.5", "top_p": 0.2}, "'top_p' does not support 0.2"),
        ({"model": "gpt-5.4", "reasoning_effort": "low", "temperature": 0.2}, "does not support 0.2"),
        ({"model": "o3", "presence_penalty": 1}, "'presence_penalty' does not support 1"),
    ],
    "parameter of models that do not reason": [
        ({"model": "gpt-5-mini", "stop": ["END"]}, "Unsupported parameter: 'stop'"),
        ({"model": "o4-mini", "logprobs": True}, "Unsupported parameter: 'logprobs'"),
    ],
    "effort at a model that does not reason": [({"reasoning_effort": "low"}, "argument supplied: reasoning_effort")],
    "effort that the model lacks": [
        ({"model": "gpt-5", "reasoning_effort": "none"}, "'minimal', 'low', 'medium', and 'high'"),
        ({"model": "o3", "reasoning_effort": "minimal"}, "'low', 'medium', and 'high'"),
        ({"model": "gpt-5.1", "reasoning_effort": "minimal"}, "does not support 'minimal'"),
    ],
    "tools with effort": [
        ({"model": "gpt-5.4", "tools": [tool()], "reasoning_effort": "low"}, "are not supported for gpt-5.4 in"),
        ({"model": "gpt-5.6-terra", "tools": [tool()], "reasoning_effort": "low"}, "use /v1/responses or set"),
        ({"model": "gpt-5.5", "tools": [tool()]}, "set reasoning_effort to 'none'"),
    ],
}  # fmt: skip
CASES = [(rule, change, words) for rule, cases in REFUSED.items() for change, words in cases]


@pytest.fixture(params=["openai", "azure_openai"])
def client(request: pytest.FixtureRequest, server: DialectServer) -> Iterator[OpenAI]:
    fake = FAKES[request.param]
    server.play(request.param, answer_with(fake, Story(text="ok")))
    access = fake.credentials(server.base_url(request.param))
    if request.param == "openai":
        with OpenAI(base_url=access.base_url, api_key=access.secret, max_retries=0) as sdk:
            yield sdk
        return
    with AzureOpenAI(
        azure_endpoint=access.base_url, api_key=access.secret, api_version="2024-10-21", max_retries=0
    ) as azure:
        yield azure


def ask(client: OpenAI, change: Json) -> None:
    body = {"model": "gpt-4o", "messages": [USER], **change}
    # The SDK has an argument for each field that OpenAI knows; the body as a whole is sent as it is here.
    answer: Any = client.chat.completions.create(model=body["model"], messages=[], extra_body=body)
    if change.get("stream"):
        list(answer)


@pytest.mark.parametrize("change", GOOD, ids=str)
def test_request__that_the_vendor_takes__answered(client: OpenAI, change: Json) -> None:
    body = {"model": "gpt-4o", "messages": [USER], **change}
    create: Any = client.chat.completions.create
    if change.get("stream"):
        assert list(create(**body))
    else:
        assert create(**body).choices[0].message.content == "ok"


@pytest.mark.parametrize(("rule", "change", "words"), CASES, ids=[f"{rule}-{words}" for rule, _, words in CASES])
def test_request__that_the_vendor_refuses__raised_by_the_sdk_in_its_words(
    client: OpenAI, rule: str, change: Json, words: str
) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        ask(client, change)
    expected = next(one for one in CHAT.rules if one.name == rule)
    assert words in raised.value.message
    assert raised.value.type == "invalid_request_error"
    assert raised.value.code == expected.code
    assert (raised.value.param is None) == (expected.param is None)


@pytest.mark.parametrize(
    "change",
    [
        {"model": "gpt-5.4", "tools": [tool()]},
        {"model": "gpt-5.4", "tools": [tool()], "reasoning_effort": "none"},
        {"model": "gpt-5.6", "tools": [tool()], "reasoning_effort": "none"},
        {"model": "gpt-5-mini", "tools": [tool()], "reasoning_effort": "low"},
        {"model": "gpt-5.6", "reasoning_effort": "low"},
    ],
    ids=str,
)
def test_request__tools_without_effort_or_at_an_older_model__answered(client: OpenAI, change: Json) -> None:
    ask(client, change)
