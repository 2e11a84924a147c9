"""Tests that requests which were not written for OpenAI keep its limits: on a fallback, and in another protocol. The
fake refuses what OpenAI does."""

from __future__ import annotations

import json
from typing import Any

import pytest

from integrations.providers.base import UpstreamRequest
from integrations.providers.errors import UnsupportedParameterError
from tests.fakes.dialects.rules.table import Refused
from tests.integrations.adapters.subject import USER, subject_of

Json = dict[str, Any]
OPEN: Json = {"type": "object", "properties": {"a": {"type": "string"}}}
CLOSED: Json = {**OPEN, "required": ["a"], "additionalProperties": False}


def fallback(**fields: Any) -> UpstreamRequest:
    """Returns the request after the fake has taken it."""
    subject = subject_of("openai")
    upstream = subject.build(crosses_vendor=True, **fields)
    subject.read(upstream)
    return upstream


def tool(parameters: Json, **fields: Any) -> Json:
    return {"type": "function", "function": {"name": "f", "parameters": parameters, **fields}}


def sent_tool(parameters: Json, **fields: Any) -> Json:
    (sent,) = json.loads(fallback(tools=[tool(parameters, **fields)]).body)["tools"]
    function: Json = sent["function"]
    return function


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"type": "object"}, {"type": "object", "properties": {}}),
        (
            {"type": "object", "properties": {"a": {"type": "array"}, "b": {"anyOf": [{"type": "array"}]}}},
            {
                "type": "object",
                "properties": {
                    "a": {"type": "array", "items": {}},
                    "b": {"anyOf": [{"type": "array", "items": {}}]},
                },
            },
        ),
        ({**OPEN, "$defs": {"x": {"type": "array"}}}, {**OPEN, "$defs": {"x": {"type": "array", "items": {}}}}),
        ({**OPEN, "required": [], "title": "T"}, {**OPEN, "required": [], "title": "T"}),
        ({}, {}),
    ],
)
def test_parameters__unfinished__finished(parameters: Json, expected: Json) -> None:
    assert sent_tool(parameters)["parameters"] == expected


def test_parameters__of_a_direct_request__as_the_client_wrote_them() -> None:
    subject = subject_of("openai")
    with pytest.raises(Refused, match="object schema missing properties"):
        subject.ask(tools=[tool({"type": "object"})])


def test_strict__schema_that_does_not_meet_it__left_out_and_named() -> None:
    assert "strict" not in sent_tool(OPEN, strict=True)
    assert sent_tool(CLOSED, strict=True)["strict"] is True
    assert "strict" not in sent_tool({**CLOSED, "properties": {"a": OPEN}}, strict=True)
    (warning,) = fallback(tools=[tool(OPEN, strict=True)]).warnings
    assert warning.startswith("tools.strict: dropped")


def test_strict__answer_whose_schema_does_not_meet_it__left_out_and_named() -> None:
    def answer(schema: Json) -> UpstreamRequest:
        held = {"name": "reply", "strict": True, "schema": schema}
        return fallback(response_format={"type": "json_schema", "json_schema": held})

    assert "strict" not in json.loads(answer(OPEN).body)["response_format"]["json_schema"]
    assert [warning.partition(":")[0] for warning in answer(OPEN).warnings] == ["response_format.json_schema.strict"]
    assert json.loads(answer(CLOSED).body)["response_format"]["json_schema"]["strict"] is True
    assert answer(CLOSED).warnings == ()


def test_call__with_a_long_id__has_one_short_id_throughout() -> None:
    def call(call_id: str) -> Json:
        return {"id": call_id, "type": "function", "function": {"name": "f", "arguments": "{}"}}

    long, other, short = "x" * 70, "x" * 71, "call_1"
    messages = [USER, {"role": "assistant", "content": None, "tool_calls": [call(one) for one in (long, other, short)]}]
    messages += [{"role": "tool", "tool_call_id": one, "content": "18"} for one in (long, other, short)]
    _, asked, *results = json.loads(fallback(messages=messages).body)["messages"]
    ids = [one["id"] for one in asked["tool_calls"]]
    assert ids == [one["tool_call_id"] for one in results]
    assert len(set(ids)) == 3
    assert ids[2] == short


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": []},
        {"role": "assistant", "content": None},
        {"role": "assistant", "content": "", "tool_calls": []},
    ],
)
def test_message__without_content__has_an_empty_text(message: Json) -> None:
    sent = json.loads(fallback(messages=[message, USER]).body)["messages"][0]
    assert sent == {"role": message["role"], "content": ""}


def test_stop__more_than_the_vendor_takes__the_first_ones_go_and_it_is_named() -> None:
    upstream = fallback(stop=["a", "b", "c", "d", "e"])
    assert json.loads(upstream.body)["stop"] == ["a", "b", "c", "d"]
    assert upstream.warnings == ("stop: 5 became 4, openai takes no more",)


@pytest.mark.parametrize("name", ["required", "properties", "items", "anyOf", "$defs", "type"])
@pytest.mark.parametrize("value", [True, 0, "a", [1], [["a"]], {"a": True}, None])
def test_schema__with_an_odd_value__sent_without_a_fault_of_the_gateway(name: str, value: Any) -> None:
    schema = {**CLOSED, name: value}
    wanted = {"type": "json_schema", "json_schema": {"name": "a", "strict": True, "schema": schema}}
    upstream = subject_of("openai").build(
        crosses_vendor=True, tools=[tool(schema, strict=True)], response_format=wanted
    )
    assert json.loads(upstream.body)["response_format"]["json_schema"]["schema"] == schema


JSON_MODE: Json = {"type": "json_object"}
AS_JSON = "Answer in JSON."


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([USER], [{"role": "system", "content": AS_JSON}, USER]),
        (
            [{"role": "system", "content": "Be brief."}, USER],
            [{"role": "system", "content": f"Be brief.\n\n{AS_JSON}"}, USER],
        ),
        (
            [{"role": "system", "content": [{"type": "text", "text": "Be brief."}]}, USER],
            [{"role": "system", "content": [{"type": "text", "text": t} for t in ("Be brief.", AS_JSON)]}, USER],
        ),
        ([{"role": "system", "content": ""}, USER], [{"role": "system", "content": AS_JSON}, USER]),
        *(
            ([{**USER, "content": content}],) * 2
            for content in ("As json", [{"type": "text", "text": "Json?"}, {"type": "text", "text": "Yes"}])
        ),
    ],
    ids=["no instructions", "instructions", "parts", "empty instructions", "said", "said in a part"],
)
def test_answer_in_json__of_a_model_that_was_not_told_so__is_named_in_the_instructions(
    messages: list[Json], expected: list[Json]
) -> None:
    sent = json.loads(fallback(messages=messages, response_format=JSON_MODE).body)

    assert (sent["messages"], sent["response_format"]) == (expected, JSON_MODE)


def test_answer_in_json__of_a_direct_request__as_the_client_wrote_it() -> None:
    upstream = subject_of("openai").build(messages=[USER], response_format=JSON_MODE)

    assert json.loads(upstream.body)["messages"] == [USER]
    with pytest.raises(Refused, match="must contain the word 'json'"):
        subject_of("openai").read(upstream)


def named_tools(count: int) -> list[Json]:
    return [{"type": "function", "function": {"name": f"f{n}"}} for n in range(count)]


def test_tools__as_many_as_the_vendor_takes__all_go_and_more_are_refused() -> None:
    assert len(json.loads(fallback(tools=named_tools(128)).body)["tools"]) == 128
    with pytest.raises(UnsupportedParameterError, match="openai takes 128 tools, and these are 129"):
        fallback(tools=named_tools(129))
    assert len(json.loads(subject_of("openai").build(tools=named_tools(129)).body)["tools"]) == 129
