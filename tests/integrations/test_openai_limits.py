"""Tests that requests which were not written for OpenAI keep its limits: on a fallback, and in another protocol. The
fake refuses what OpenAI does."""

from __future__ import annotations

import json
from typing import Any

import pytest

from integrations.providers.base import UpstreamRequest
from integrations.providers.errors import UnsupportedParameterError
from tests.integrations.adapters.subject import subject_of

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


@pytest.mark.parametrize("name", ["required", "properties", "items", "anyOf", "$defs", "type"])
@pytest.mark.parametrize("value", [True, 0, "a", [1], [["a"]], {"a": True}, None])
def test_schema__with_an_odd_value__sent_without_a_fault_of_the_gateway(name: str, value: Any) -> None:
    schema = {**CLOSED, name: value}
    wanted = {"type": "json_schema", "json_schema": {"name": "a", "strict": True, "schema": schema}}
    upstream = subject_of("openai").build(
        crosses_vendor=True, tools=[tool(schema, strict=True)], response_format=wanted
    )
    assert json.loads(upstream.body)["response_format"]["json_schema"]["schema"] == schema


def named_tools(count: int) -> list[Json]:
    return [{"type": "function", "function": {"name": f"f{n}"}} for n in range(count)]


def test_tools__as_many_as_the_vendor_takes__all_go_and_more_are_refused() -> None:
    assert len(json.loads(fallback(tools=named_tools(128)).body)["tools"]) == 128
    with pytest.raises(UnsupportedParameterError, match="openai takes 128 tools, and these are 129"):
        fallback(tools=named_tools(129))
    assert len(json.loads(subject_of("openai").build(tools=named_tools(129)).body)["tools"]) == 129
