"""Tests what the fake of OpenAI's Responses API refuses, as the official SDK sees it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import OpenAI

from tests.fakes.dialects.openai import FAKES
from tests.fakes.dialects.openai_responses import ENCRYPTED
from tests.fakes.dialects.rules.responses import RESPONSES
from tests.fakes.dialects.server import DialectServer, answer_with
from tests.fakes.dialects.story import Story

Json = dict[str, Any]
CLOSED: Json = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
OPEN: Json = {"type": "object", "properties": {"city": {"type": "string"}}}
USER: Json = {"role": "user", "content": [{"type": "input_text", "text": "Weather?"}]}
CALL: Json = {"type": "function_call", "call_id": "c", "name": "weather", "arguments": "{}"}
RESULT: Json = {"type": "function_call_output", "call_id": "c", "output": "18"}
THOUGHT: Json = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": f"{ENCRYPTED}c2Vj"}
LONG = "c" * 65


def tool(**fields: Any) -> Json:
    return {"type": "function", "name": "weather", "parameters": CLOSED, **fields}


def answer_format(schema: Json) -> Json:
    return {"format": {"type": "json_schema", "name": "reply", "strict": True, "schema": schema}}


# Each request is one that OpenAI takes.
GOOD: list[Json] = [
    {},
    {"input": "Hello", "max_output_tokens": 16, "reasoning": {"effort": "low", "summary": "auto"}},
    {"input": [USER, THOUGHT, CALL, RESULT], "tools": [tool()], "include": ["reasoning.encrypted_content"]},
    {"tools": [tool(strict=False, parameters=OPEN)], "tool_choice": {"type": "function", "name": "weather"}},
    {"text": answer_format(CLOSED)},
    {"model": "gpt-4o", "temperature": 0.2},
    {"model": "gpt-5.4", "temperature": 0.2},
]
# By rule: what is changed in a request that OpenAI takes, and a part of the error.
REFUSED: dict[str, list[tuple[Json, str]]] = {
    "unknown field": [
        ({"messages": []}, "'messages'"),
        ({"input": [{**USER, "name": "a"}]}, "'input[0].name'"),
        ({"reasoning": {"efforts": "low"}}, "'reasoning.efforts'"),
        ({"tools": [tool(input_examples=[])]}, "'tools[0].input_examples'"),
    ],
    "missing field": [
        ({"tools": [{"type": "function", "function": {"name": "a"}}]}, "'tools[0]."),
        ({"tools": [{"type": "function", "name": "a"}]}, "'tools[0].parameters'"),
    ],
    "few tokens": [({"max_output_tokens": 1}, "Expected a value >= 16, but got 1 instead")],
    "sampling at a model that reasons": [({"temperature": 0.5}, "Unsupported parameter: 'temperature'")],
    "part of a chat completion": [
        ({"input": [{"role": "user", "content": [{"type": "text", "text": "a"}]}]}, "Invalid value: 'text'")
    ],
    "part of a result": [
        ({"input": [CALL, {**RESULT, "output": [{"type": "output_text", "text": "a"}]}]}, "and 'scoped_content'")
    ],
    "result without call": [({"input": [USER, RESULT]}, "function call output with call_id c.")],
    "call without result": [({"input": [USER, CALL]}, "No tool output found for function call c.")],
    "reasoning without what followed": [({"input": [USER, THOUGHT, USER]}, "Item 'rs_1' of type 'reasoning'")],
    "reasoning that is not kept": [
        ({"input": [{**THOUGHT, "encrypted_content": None}, CALL, RESULT]}, "Item with id 'rs_1' not found")
    ],
    "long id of a call": [
        ({"input": [{**CALL, "call_id": LONG}, {**RESULT, "call_id": LONG}]}, "'input[0].call_id': string too long")
    ],
    "name with wrong characters": [({"tools": [tool(name="a.b")]}, "'tools[0].name': string does not match")],
    "schema of a function": [
        ({"tools": [tool(strict=True, parameters=OPEN)]}, "Invalid schema for function 'weather': In context=()"),
        ({"tools": [tool(strict=False, parameters={"type": "object"})]}, "object schema missing properties"),
        ({"tools": [tool(strict=False, parameters={})]}, "schema must be a JSON Schema of 'type: \"object\"'"),
    ],
    "open schema of a strict answer": [({"text": answer_format(OPEN)}, "for response_format 'reply'")],
}
CASES = [(rule, change, words) for rule, cases in REFUSED.items() for change, words in cases]


@pytest.fixture
def client(server: DialectServer) -> Iterator[OpenAI]:
    server.play("openai", answer_with(FAKES["openai"], Story(text="ok")))
    access = FAKES["openai"].credentials(server.base_url("openai"))
    with OpenAI(base_url=access.base_url, api_key=access.secret, max_retries=0) as made:
        yield made


def ask(client: OpenAI, change: Json) -> Any:
    body = {"model": "gpt-5.5", "input": [USER], "store": False, **change}
    return client.responses.create(model=body["model"], extra_body=body)


@pytest.mark.parametrize("change", GOOD, ids=str)
def test_request__that_the_vendor_takes__answered(client: OpenAI, change: Json) -> None:
    assert ask(client, change).output_text == "ok"


@pytest.mark.parametrize(("rule", "change", "words"), CASES, ids=[f"{rule}-{words}" for rule, _, words in CASES])
def test_request__that_the_vendor_refuses__raised_by_the_sdk_in_its_words(
    client: OpenAI, rule: str, change: Json, words: str
) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        ask(client, change)
    expected = next(one for one in RESPONSES.rules if one.name == rule)
    assert words in raised.value.message
    assert raised.value.type == "invalid_request_error"
    assert raised.value.code == expected.code
    assert (raised.value.param is None) == (expected.param is None)
