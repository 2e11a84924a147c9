"""Tests requests to Cohere: address, parameters, tools and thinking."""

from __future__ import annotations

from typing import Any

import pytest

from integrations.providers.cohere import ADAPTER
from integrations.providers.errors import UnsupportedParameterError
from tests.integrations.cohere_requests import COMMAND_A, REASONING, USER, build, built, data_url
from tests.integrations.exchanges import chat_request, credentials

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
PING = {"type": "function", "function": {"name": "ping", "description": "Pings", "parameters": SCHEMA}}
PONG = {"type": "function", "function": {"name": "pong", "description": "Pongs", "parameters": SCHEMA}}


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        ("", "https://api.cohere.com/v2/chat"),
        ("https://api.cohere.com", "https://api.cohere.com/v2/chat"),
        ("https://proxy.test/cohere/v2/", "https://proxy.test/cohere/v2/chat"),
    ],
)
def test_address__with_or_without_the_version__one_place(base_url: str, url: str) -> None:
    request = ADAPTER.build_request(chat_request(COMMAND_A), credentials("cohere", base_url, key="k3y"))
    assert (request.method, request.url) == ("POST", url)
    assert request.headers["authorization"] == "Bearer k3y"


def test_endpoint__same_credentials__made_once() -> None:
    access = credentials("cohere")
    first, second = (ADAPTER.build_request(chat_request(COMMAND_A), access) for _ in range(2))
    assert first.headers is second.headers


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"temperature": 0.3, "seed": 7, "logprobs": True}, {"temperature": 0.3, "seed": 7, "logprobs": True}),
        ({"top_p": 0.8, "top_k": 40}, {"p": 0.8, "k": 40}),
        ({"p": 0.8, "k": 40}, {"p": 0.8, "k": 40}),
        ({"max_tokens": 5}, {"max_tokens": 5}),
        ({"max_completion_tokens": 6, "max_tokens": 5}, {"max_tokens": 6}),
        ({"stop": "END"}, {"stop_sequences": ["END"]}),
        ({"stop": ["A", "B"]}, {"stop_sequences": ["A", "B"]}),
        ({"stop_sequences": ["C"]}, {"stop_sequences": ["C"]}),
        ({"frequency_penalty": 0.5, "presence_penalty": 1}, {"frequency_penalty": 0.5, "presence_penalty": 1}),
        ({"safety_mode": "STRICT", "priority": 1}, {"safety_mode": "STRICT", "priority": 1}),
        ({"citation_options": {"mode": "OFF"}}, {"citation_options": {"mode": "OFF"}}),
        ({"documents": ["a", {"data": {"text": "b"}}]}, {"documents": ["a", {"data": {"text": "b"}}]}),
        ({"n": 1, "modalities": ["text"], "stream": True, "stream_options": {}}, {"stream": True}),
        ({"response_format": {"type": "text"}}, {}),
        ({"response_format": {"type": "json_object"}}, {"response_format": {"type": "json_object"}}),
        (
            {"response_format": {"type": "json_object", "json_schema": SCHEMA}},
            {"response_format": {"type": "json_object", "json_schema": SCHEMA}},
        ),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "r", "schema": SCHEMA, "strict": True},
                }
            },
            {"response_format": {"type": "json_object", "json_schema": SCHEMA}},
        ),
    ],
    ids=str,
)
def test_field__openais_or_coheres_name__coheres(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    body, warnings = build(chat_request(COMMAND_A, **fields))
    assert {"stream": False, **expected} == {name: body[name] for name in body if name not in ("model", "messages")}
    assert not warnings


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("user", "u"),
        ("store", True),
        ("metadata", {"a": "b"}),
        ("logit_bias", {"1": 2}),
        ("top_logprobs", 3),
        ("service_tier", "flex"),
        ("prediction", {"type": "content", "content": "x"}),
        ("parallel_tool_calls", False),
        ("field_of_tomorrow", 1),
    ],
)
def test_field__unknown_to_cohere__dropped_and_named(name: str, value: Any) -> None:
    body, warnings = build(chat_request(COMMAND_A, **{name: value}))
    assert name not in body
    assert [warning.split(":")[0] for warning in warnings] == [name]


@pytest.mark.parametrize(("value", "nearest"), [(-1.5, 0), (2, 1)])
def test_penalty__beyond_coheres_range__nearest_and_named(value: float, nearest: float) -> None:
    body, warnings = build(chat_request(COMMAND_A, frequency_penalty=value))
    assert body["frequency_penalty"] == nearest
    assert warnings[0].startswith("frequency_penalty:")


def parts(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": list(parts)}]}


@pytest.mark.parametrize(
    ("fields", "parameter"),
    [
        ({"n": 2}, "n"),
        ({"modalities": ["audio"]}, "modalities"),
        ({"audio": {"voice": "x"}}, "modalities"),
        ({"tools": [{"type": "web_search"}]}, "tools"),
        ({"tools": [PING], "tool_choice": {"type": "function", "function": {"name": "pong"}}}, "tool_choice"),
        ({"messages": [{"role": "function", "name": "f", "content": "x"}]}, "messages"),
        (parts({"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}), "messages"),
        (parts({"type": "video_url", "video_url": {"url": "x"}}), "messages"),
        (parts({"type": "file", "file": {"file_id": "f1"}}), "messages"),
        (parts({"type": "document_url", "document_url": {"url": "ftp://x/a.txt"}}), "messages"),
        (parts({"type": "document_url", "document_url": {"url": data_url("application/pdf", b"%PDF")}}), "messages"),
        ({"messages": [{"role": "system", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}, "messages"),
        ({"messages": [USER, {"role": "assistant", "tool_calls": [{"id": "1", "custom": {}}]}]}, "messages"),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "r"}}}, "response_format"),
    ],
    ids=str,
)
def test_field__another_kind_of_answer__refused(fields: dict[str, Any], parameter: str) -> None:
    with pytest.raises(UnsupportedParameterError) as caught:
        built(**fields)
    assert caught.value.parameter == parameter


@pytest.mark.parametrize(
    ("choice", "expected", "names"),
    [
        (None, None, ["ping", "pong"]),
        ("auto", None, ["ping", "pong"]),
        ("none", "NONE", ["ping", "pong"]),
        ("required", "REQUIRED", ["ping", "pong"]),
        ({"type": "function", "function": {"name": "pong"}}, "REQUIRED", ["pong"]),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [PONG]}}, "REQUIRED", ["pong"]),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [PING]}}, None, ["ping"]),
    ],
    ids=str,
)
def test_tool_choice__every_form__coheres(choice: Any, expected: str | None, names: list[str]) -> None:
    body, warnings = build(chat_request(COMMAND_A, tools=[PING, PONG], tool_choice=choice))
    assert body.get("tool_choice") == expected
    assert [tool["function"]["name"] for tool in body["tools"]] == names
    assert not warnings


def test_web_search__no_connectors__refused() -> None:
    with pytest.raises(UnsupportedParameterError) as caught:
        build(chat_request(COMMAND_A, web_search_options={}))
    assert caught.value.parameter == "web_search_options"


def test_tool_choice__without_tools__left_out() -> None:
    assert "tool_choice" not in built(tool_choice="none", tools=[])


def strict(tool: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {**tool["function"], "strict": True, **more}}


@pytest.mark.parametrize(
    ("tools", "fields", "expected", "named"),
    [
        ([PING], {}, None, False),
        ([strict(PING), strict(PONG)], {}, True, False),
        ([strict(PING), PONG], {}, None, True),
        ([strict(PING, parameters={"type": "object"})], {}, None, True),
        ([PING], {"strict_tools": True}, True, False),
        ([strict(PING)], {"strict_tools": False}, False, False),
    ],
)
def test_strict__of_the_tools__all_or_none(
    tools: list[Any], fields: dict[str, Any], expected: bool | None, named: bool
) -> None:
    body, warnings = build(chat_request(COMMAND_A, tools=tools, **fields))
    assert body.get("strict_tools") is expected
    assert bool(warnings) is named
    assert all("strict" not in tool["function"] for tool in body["tools"])


@pytest.mark.parametrize(
    ("model", "fields", "expected", "named"),
    [
        (REASONING, {}, None, ()),
        (REASONING, {"thinking": {"type": "enabled"}}, {"type": "enabled"}, ()),
        (REASONING, {"thinking": {"type": "adaptive"}}, {"type": "enabled"}, ()),
        (REASONING, {"thinking": {"type": "disabled"}}, {"type": "disabled"}, ()),
        (
            REASONING,
            {"thinking": {"type": "enabled", "budget_tokens": 500}},
            {"type": "enabled", "token_budget": 500},
            (),
        ),
        (REASONING, {"thinking": {"type": "enabled", "token_budget": 7}}, {"type": "enabled", "token_budget": 7}, ()),
        (REASONING, {"reasoning_effort": "none"}, {"type": "disabled"}, ()),
        (REASONING, {"reasoning_effort": "low"}, {"type": "enabled", "token_budget": 4096}, ()),
        ("command-a-plus-05-2026", {"reasoning_effort": "high"}, {"type": "enabled", "token_budget": 16384}, ()),
        (REASONING, {"reasoning_effort": "max"}, {"type": "enabled"}, ()),
        (REASONING, {"reasoning_effort": "low", "max_tokens": 5120}, {"type": "enabled", "token_budget": 4096}, ()),
        (
            REASONING,
            {"reasoning_effort": "high", "max_tokens": 3000},
            {"type": "enabled", "token_budget": 2400},
            ("thinking",),
        ),
        (
            REASONING,
            {"reasoning_effort": "max", "max_tokens": 3000},
            {"type": "enabled", "token_budget": 2400},
            ("thinking",),
        ),
        (
            REASONING,
            {"thinking": {"type": "enabled", "budget_tokens": 2999}, "max_tokens": 3000},
            {"type": "enabled", "token_budget": 2999},
            (),
        ),
        (REASONING, {"thinking": {"type": "enabled"}, "max_tokens": 3000}, {"type": "enabled"}, ()),
        (REASONING, {"thinking": {"type": "between_tools"}}, {"type": "disabled"}, ()),
        (
            REASONING,
            {"thinking": {"type": "adaptive", "display": "omitted"}},
            {"type": "enabled"},
            ("thinking.display",),
        ),
        (COMMAND_A, {"thinking": {"type": "enabled"}}, None, ("thinking",)),
        (COMMAND_A, {"thinking": {"type": "disabled"}}, None, ()),
        ("command-r-08-2024", {"reasoning_effort": "low"}, None, ("reasoning_effort",)),
    ],
    ids=str,
)
def test_thinking__by_model__coheres_or_named(
    model: str, fields: dict[str, Any], expected: dict[str, Any] | None, named: tuple[str, ...]
) -> None:
    body, warnings = build(chat_request(model, **fields))
    assert body.get("thinking") == expected
    assert tuple(warning.split(":")[0] for warning in warnings) == named
