"""Tests tools, their choice, and answers that follow a schema in requests to the Messages API."""

from __future__ import annotations

import json
from typing import Any

import pytest
from anthropic import transform_schema
from hypothesis import given
from hypothesis import strategies as st

from integrations.providers.anthropic.schema import accepted_schema
from integrations.providers.errors import UnsupportedParameterError
from tests.integrations.anthropic_requests import (
    ADAPTIVE,
    OLD,
    PING,
    PING_THERE,
    USER,
    body_of,
    schema_format,
    upstream,
)


def test_tools__functions_and_the_vendors_own__in_order() -> None:
    search = {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}
    own = {"name": "native", "input_schema": {"type": "object"}}
    described = {
        "type": "function",
        "function": {"name": "pong", "description": "Pongs", "parameters": {"properties": {}}},
        "cache_control": {"type": "ephemeral"},
    }
    request = upstream(tools=[search, PING, own, described, {"type": "mcp_toolset", "mcp_server_name": "m"}])
    assert json.loads(request.body)["tools"] == [
        search,
        PING_THERE,
        own,
        {
            "name": "pong",
            "description": "Pongs",
            "input_schema": {"type": "object", "properties": {}},
            "cache_control": {"type": "ephemeral"},
        },
        {"type": "mcp_toolset", "mcp_server_name": "m"},
    ]
    assert not request.warnings


@pytest.mark.parametrize(
    "tool", [{"type": "web_search_preview"}, {"type": "custom", "custom": {"name": "x"}}, {"googleSearch": {}}]
)
def test_tools__of_another_vendor__refused(tool: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedParameterError) as caught:
        upstream(tools=[tool])
    assert caught.value.parameter == "tools"


def test_tools__strict__where_the_model_can() -> None:
    strict = {"type": "function", "function": {**PING["function"], "strict": True}}  # type: ignore[dict-item]  # a mapping
    (tool,) = body_of(tools=[strict])["tools"]
    assert tool == {
        "name": "ping",
        "strict": True,
        "input_schema": {"type": "object", "properties": {}, "additionalProperties": False},
    }
    request = upstream(OLD, tools=[strict])
    assert json.loads(request.body)["tools"] == [PING_THERE]
    assert request.warnings == ("tools[].function.strict: dropped, this model follows no schema strictly",)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, None),
        ({"tool_choice": "none"}, {"type": "none"}),
        ({"tool_choice": "auto"}, {"type": "auto"}),
        ({"tool_choice": "required"}, {"type": "any"}),
        ({"tool_choice": {"type": "function", "function": {"name": "ping"}}}, {"type": "tool", "name": "ping"}),
        ({"parallel_tool_calls": True}, None),
        ({"parallel_tool_calls": False}, {"type": "auto", "disable_parallel_tool_use": True}),
        (
            {"tool_choice": "required", "parallel_tool_calls": False},
            {"type": "any", "disable_parallel_tool_use": True},
        ),
        ({"tool_choice": "none", "parallel_tool_calls": False}, {"type": "none"}),
    ],
)
def test_tool_choice__every_form(fields: dict[str, Any], expected: Any) -> None:
    request = upstream(tools=[PING], **fields)
    assert json.loads(request.body).get("tool_choice") == expected
    assert not request.warnings


def test_tool_choice__some_tools__only_those_are_offered() -> None:
    pong = {"type": "function", "function": {"name": "pong"}}
    allowed = {"mode": "required", "tools": [{"type": "function", "function": {"name": "pong"}}]}
    body = body_of(tools=[PING, pong], tool_choice={"type": "allowed_tools", "allowed_tools": allowed})
    assert [tool["name"] for tool in body["tools"]] == ["pong"]
    assert body["tool_choice"] == {"type": "any"}


def test_tool_choice__without_tools__left_out() -> None:
    assert "tool_choice" not in body_of(tool_choice="auto", parallel_tool_calls=False)


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "ping"}}])
def test_tool_choice__forced_where_the_model_cannot__refused(choice: Any) -> None:
    with pytest.raises(UnsupportedParameterError, match="tool_choice"):
        upstream("claude-opus-5-5", tools=[PING], tool_choice=choice)
    assert body_of("claude-opus-5", tools=[PING], tool_choice=choice)["tool_choice"]


def test_response_format__schema__natively_and_closed() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 1, "description": "how many"}}}
    request = upstream(response_format=schema_format(schema))
    assert json.loads(request.body)["output_config"] == {
        "format": {
            "type": "json_schema",
            "schema": {
                "type": "object",
                "properties": {"a": {"type": "integer", "description": "how many\n\n{minimum: 1}"}},
                "additionalProperties": False,
            },
        }
    }
    assert not request.warnings


@pytest.mark.parametrize("system", [None, "Be brief."])
def test_response_format__any_json__requested_in_words(system: str | None) -> None:
    messages = [{"role": "system", "content": system}, USER] if system else [USER]
    request = upstream(messages=messages, response_format={"type": "json_object"})
    instructions = json.loads(request.body)["system"]
    assert instructions.startswith(system or "Answer with one valid JSON object")
    assert "one valid JSON object" in instructions
    (warning,) = request.warnings
    assert warning.startswith("response_format: asked for in words")


def test_output_config__native__kept() -> None:
    config = {"effort": "low", "format": {"type": "json_schema", "schema": {"type": "object"}}}
    assert body_of(ADAPTIVE, output_config=config)["output_config"] == config
    assert body_of(ADAPTIVE, output_format=config["format"])["output_config"] == {"format": config["format"]}


SCHEMAS = st.recursive(
    st.sampled_from(
        [
            {"type": "string"},
            {"type": "string", "format": "date-time"},
            {"type": "string", "format": "password"},
            {"type": "integer", "minimum": 3},
            {"type": "string", "enum": ["a", "b"]},
            {"type": "number", "multipleOf": 2, "description": "even"},
            {"type": "null"},
        ]
    ),
    lambda inner: st.one_of(
        st.builds(lambda item: {"type": "array", "items": item, "minItems": 2}, inner),
        st.builds(lambda a, b: {"anyOf": [a, b]}, inner, inner),
        st.builds(lambda a: {"type": "object", "properties": {"a": a}, "required": ["a"]}, inner),
    ),
    max_leaves=6,
)


@given(SCHEMAS)
def test_schema__accepted__as_far_as_the_vendors_sdk_makes_it(schema: dict[str, Any]) -> None:
    """The schemas are compared without descriptions, whose wording is the SDK's own, and without the type beside an
    enum, which is allowed."""
    accepted = accepted_schema(schema)
    assert bare(accepted) == bare(transform_schema(schema))
    assert accepted_schema(accepted) == accepted


def bare(schema: Any) -> Any:
    if isinstance(schema, dict):
        gone = {"description"} | ({"type"} if "enum" in schema else set())
        return {name: bare(value) for name, value in schema.items() if name not in gone}
    return [bare(item) for item in schema] if isinstance(schema, list) else schema
