"""Tests tools and answers that follow a schema in the sandbox, through the official SDK."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest
from openai import OpenAI
from pydantic import BaseModel

from tests.integrations.sandbox.requests import HELLO
from tests.tables.cases import tabled


def tool(parameters: dict[str, Any], name: str = "look_up", **more: Any) -> Any:
    return {"type": "function", "function": {"name": name, "parameters": parameters, **more}}


def city_tool(name: str = "get_weather") -> Any:
    return tool({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}, name)


def test_tools__offered__called_with_arguments_then_answered_in_text(client: OpenAI) -> None:
    messages = [*HELLO]
    first = client.chat.completions.create(model="echo", messages=messages, tools=[city_tool()])
    choice = first.choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content is None
    (call,) = choice.message.tool_calls or []
    assert call.type == "function"
    assert isinstance(json.loads(call.function.arguments)["city"], str)

    messages += [choice.message, {"role": "tool", "tool_call_id": call.id, "content": "21 degrees"}]
    second = client.chat.completions.create(model="echo", messages=messages, tools=[city_tool()])

    assert second.choices[0].finish_reason == "stop"
    assert "21 degrees" in (second.choices[0].message.content or "")


def test_tools__two_named_by_the_user__called_in_parallel_unless_switched_off(client: OpenAI) -> None:
    tools = [city_tool("find_hotel"), city_tool("find_train")]
    messages: Any = [{"role": "user", "content": "Please find a hotel and find a train."}]

    parallel = client.chat.completions.create(model="echo", messages=messages, tools=tools).choices[0].message
    single = client.chat.completions.create(model="echo", messages=messages, tools=tools, parallel_tool_calls=False)

    calls = parallel.tool_calls or []
    assert [call.function.name for call in calls if call.type == "function"] == ["find_hotel", "find_train"]
    assert len({call.id for call in calls}) == 2
    assert len(single.choices[0].message.tool_calls or []) == 1


def test_tools__streamed__pieces_make_up_the_same_calls(client: OpenAI) -> None:
    tools = [city_tool("find_hotel"), city_tool("find_train")]
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


@tabled
def test_tool_choice__each_form__is_obeyed(client: OpenAI, choice: Any, called: list[str]) -> None:
    answer = client.chat.completions.create(
        model="echo", messages=HELLO, tools=[city_tool("first_tool"), city_tool("other_tool")], tool_choice=choice
    )

    calls = answer.choices[0].message.tool_calls or []
    assert [call.function.name for call in calls if call.type == "function"] == called


def test_tool_choice__unknown_function__is_rejected(client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="tool_choice"):
        client.chat.completions.create(
            model="echo",
            messages=HELLO,
            tools=[city_tool()],
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
    answer = client.chat.completions.parse(model="echo", messages=HELLO, response_format=_Book)

    book = answer.choices[0].message.parsed
    assert book is not None
    assert book.authors


def test_response_format__json_object__is_an_object(client: OpenAI) -> None:
    answer = client.chat.completions.create(model="echo", messages=HELLO, response_format={"type": "json_object"})

    assert isinstance(json.loads(answer.choices[0].message.content or ""), dict)
