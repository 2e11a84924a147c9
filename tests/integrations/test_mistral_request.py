"""Tests requests to Mistral: parameters, tools and thinking."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from integrations.providers.base import ChatRequest
from integrations.providers.errors import UnsupportedParameterError
from integrations.providers.mistral import ADAPTER
from tests.integrations.exchanges import chat_request, credentials
from tests.integrations.mistral_requests import SMALL, USER, build, built, called, result

PING = {"type": "function", "function": {"name": "ping", "parameters": {"type": "object"}}}
PONG = {"type": "function", "function": {"name": "pong", "parameters": {"type": "object"}}}


def test_body__all_of_it_mistrals__the_same_bytes() -> None:
    request = chat_request(
        SMALL,
        messages=[
            {"role": "system", "content": "Be brief"},
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x/a.png"}}]},
            called("aB3dE6gH9"),
            result("aB3dE6gH9"),
        ],
        tools=[PING],
        safe_prompt=True,
        random_seed=1,
        field_of_tomorrow={"x": 1.50},
    )
    assert ADAPTER.build_request(request, credentials("mistral")).body is request.body


def test_body__another_model_upstream__values_keep_their_bytes() -> None:
    body = b'{"model":"mistral/x","messages":[{"role":"user","content":"\\u00fc"}],"temperature":1.0}'
    request = ADAPTER.build_request(ChatRequest("x", False, body, json.loads(body)), credentials("mistral"))
    assert b'[{"role":"user","content":"\\u00fc"}]' in request.body
    assert b'"temperature":1.0' in request.body
    assert json.loads(request.body)["model"] == "x"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"seed": 7}, {"random_seed": 7}),
        ({"seed": 7, "random_seed": 8}, {"random_seed": 8}),
        ({"max_completion_tokens": 9}, {"max_tokens": 9}),
        ({"max_completion_tokens": 9, "max_tokens": 4}, {"max_tokens": 9}),
        ({"stream": True, "stream_options": {"include_usage": True}}, {"stream": True}),
        ({"tool_choice": None, "response_format": None, "tools": None}, {}),
        ({"prompt_mode": None}, {"prompt_mode": None}),
        ({"modalities": ["text"]}, {}),
        ({"service_tier": "auto"}, {"service_tier": "auto"}),
        ({"service_tier": "default", "store": False, "logit_bias": {}, "user": ""}, {}),
        ({"temperature": 1.9}, {"temperature": 1.9}),
        (
            {
                "prediction": {
                    "type": "content",
                    "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
                }
            },
            {"prediction": {"type": "content", "content": "ab"}},
        ),
        ({"metadata": {"a": "b"}, "n": 2, "logprobs": True}, {"metadata": {"a": "b"}, "n": 2, "logprobs": True}),
    ],
    ids=str,
)
def test_field__openais_name_or_form__mistrals(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    body, warnings = build(chat_request(SMALL, **fields))
    assert {name: body[name] for name in body if name not in ("model", "messages")} == expected
    assert not warnings


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("user", "u"),
        ("store", True),
        ("logit_bias", {"1": 2}),
        ("verbosity", "low"),
        ("service_tier", "flex"),
        ("safety_identifier", "s"),
        ("moderation", {"model": "omni-moderation-latest"}),
        ("prompt_cache_options", {"mode": "explicit"}),
    ],
)
def test_field__unknown_to_mistral__dropped_and_named(name: str, value: Any) -> None:
    body, warnings = build(chat_request(SMALL, **{name: value}))
    assert name not in body
    assert [warning.split(":")[0] for warning in warnings] == [name]


def test_field__of_the_vendors_future__passes_but_not_on_a_fallback() -> None:
    request = chat_request(SMALL, field_of_tomorrow=1)
    body = json.loads(ADAPTER.build_request(request, credentials("mistral")).body)
    assert body["field_of_tomorrow"] == 1
    body, warnings = build(replace(request, crosses_vendor=True))
    assert "field_of_tomorrow" not in body
    assert warnings == ("field_of_tomorrow: dropped, mistral has no counterpart",)


@pytest.mark.parametrize(
    ("fields", "parameter"),
    [
        ({"modalities": ["text", "audio"], "audio": {"voice": "x"}}, "modalities"),
        ({"tools": [{"type": "custom", "custom": {"name": "c"}}]}, "tools"),
        ({"tools": [PING], "tool_choice": {"type": "custom", "custom": {"name": "c"}}}, "tool_choice"),
        (
            {
                "tools": [PING],
                "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [PONG]}},
            },
            "tool_choice",
        ),
        ({"messages": [{"role": "function", "name": "f", "content": "x"}]}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "video_url", "video_url": {"url": "x"}}]}]}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "file", "file": {"filename": "x"}}]}]}, "messages"),
        ({"messages": [USER, {"role": "assistant", "tool_calls": [{"id": "1", "custom": {}}]}]}, "messages"),
    ],
    ids=str,
)
def test_field__another_kind_of_answer__refused(fields: dict[str, Any], parameter: str) -> None:
    with pytest.raises(UnsupportedParameterError) as caught:
        built(**fields)
    assert (caught.value.parameter, caught.value.provider) == (parameter, "mistral")


def test_tools__odd_fields__only_what_mistral_knows() -> None:
    tool = {
        "type": "function",
        "function": {"name": "ping", "strict": True, "description": None, "extra": 1},
        "cache_control": {"type": "ephemeral"},
    }
    assert built(tools=[tool])["tools"] == [
        {
            "type": "function",
            "function": {"name": "ping", "strict": True, "parameters": {"type": "object", "properties": {}}},
        }
    ]


def test_tools__the_vendors_own__pass() -> None:
    tool = {"type": "document_library", "library_ids": ["a"]}
    assert built(tools=[tool])["tools"] == [tool]


@pytest.mark.parametrize(
    ("choice", "expected", "tools"),
    [
        ("auto", "auto", [PING, PONG]),
        ("none", "none", [PING, PONG]),
        ("required", "any", [PING, PONG]),
        (
            {"type": "function", "function": {"name": "pong"}},
            {"type": "function", "function": {"name": "pong"}},
            [PING, PONG],
        ),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [PONG]}}, "any", [PONG]),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [PONG]}}, "auto", [PONG]),
    ],
    ids=str,
)
def test_tool_choice__every_form__mistrals(choice: Any, expected: Any, tools: list[Any]) -> None:
    body = built(tools=[PING, PONG], tool_choice=choice)
    assert (body["tool_choice"], body["tools"]) == (expected, tools)


@pytest.mark.parametrize(
    ("model", "fields", "expected", "named"),
    [
        (
            SMALL,
            {"thinking": {"type": "enabled", "budget_tokens": 2000}},
            {"reasoning_effort": "high"},
            ("thinking.budget_tokens",),
        ),
        (SMALL, {"thinking": {"type": "enabled"}}, {"reasoning_effort": "high"}, ()),
        (SMALL, {"thinking": {"type": "between_tools"}}, {"reasoning_effort": "none"}, ()),
        (
            SMALL,
            {"thinking": {"type": "adaptive", "display": "omitted"}},
            {"reasoning_effort": "high"},
            ("thinking.display",),
        ),
        (SMALL, {"reasoning_effort": "max"}, {"reasoning_effort": "max"}, ()),
        (SMALL, {"thinking": {"type": "disabled"}}, {"reasoning_effort": "none"}, ()),
        (SMALL, {"thinking": {"type": "enabled"}, "reasoning_effort": "low"}, {"reasoning_effort": "low"}, ()),
        ("mistral-small-2506", {"thinking": {"type": "enabled"}}, {}, ("thinking",)),
        ("mistral-large-latest", {"thinking": {"type": "disabled"}}, {}, ()),
        ("mistral-large-latest", {"reasoning_effort": "high"}, {"reasoning_effort": "high"}, ()),
        ("magistral-medium-latest", {"thinking": {"type": "adaptive"}}, {"prompt_mode": "reasoning"}, ()),
        ("magistral-medium-latest", {"thinking": {"type": "disabled"}}, {}, ("thinking",)),
    ],
    ids=str,
)
def test_thinking__by_model__its_switch_or_named(
    model: str, fields: dict[str, Any], expected: dict[str, Any], named: tuple[str, ...]
) -> None:
    body, warnings = build(chat_request(model, **fields))
    assert {name: body[name] for name in body if name not in ("model", "messages")} == expected
    assert tuple(warning.split(":")[0] for warning in warnings) == named


def test_reasoning_effort__on_a_fallback_to_a_model_without__dropped_and_named() -> None:
    body, warnings = build(replace(chat_request("mistral-large-latest", reasoning_effort="low"), crosses_vendor=True))
    assert "reasoning_effort" not in body
    assert warnings[0].startswith("reasoning_effort: dropped")


def test_temperature__too_hot_on_a_fallback__lowered_and_named() -> None:
    body, warnings = build(replace(chat_request(SMALL, temperature=1.9), crosses_vendor=True))
    assert body["temperature"] == 1.5
    assert warnings[0].startswith("temperature:")


def test_thinking__in_mistrals_own_form__the_same_bytes() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}], "closed": True}
    messages = [USER, {"role": "assistant", "content": [thinking, {"type": "text", "text": "a"}]}, USER]
    request = chat_request(SMALL, messages=messages)
    assert ADAPTER.build_request(request, credentials("mistral")).body is request.body


@pytest.mark.parametrize("options", [{}, {"search_context_size": "low"}], ids=str)
def test_web_search_options__refused(options: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedParameterError, match="web_search_options"):
        built(web_search_options=options)


def test_thinking__of_a_type_of_tomorrow__refused_by_name() -> None:
    with pytest.raises(UnsupportedParameterError, match="thinking: type 'tomorrows'"):
        built(thinking={"type": "tomorrows"})
