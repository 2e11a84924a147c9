"""Tests requests to the Messages API: address and headers, limits and sampling, fields without a counterpart."""

from __future__ import annotations

import json
from typing import Any

import pytest

from integrations.providers.anthropic import ADAPTER
from integrations.providers.errors import UnsupportedParameterError
from tests.integrations.anthropic_requests import (
    ADAPTIVE,
    BUDGETS,
    OLD,
    PING,
    PING_THERE,
    USER,
    body_of,
    content_of,
    looped,
    upstream,
)
from tests.integrations.exchanges import chat_request, credentials


@pytest.mark.parametrize("base_url", ["https://proxy.test", "https://proxy.test/", "https://proxy.test/v1", ""])
def test_request__base_url__with_or_without_v1(base_url: str) -> None:
    request = ADAPTER.build_request(chat_request(BUDGETS), credentials("anthropic", base_url, key="sk-ant-1"))
    assert request.url == f"{'https://proxy.test' if base_url else 'https://api.anthropic.com'}/v1/messages"
    assert request.headers["x-api-key"] == "sk-ant-1"
    assert request.headers["anthropic-version"] == "2023-06-01"
    assert request.headers["content-type"] == "application/json"
    assert "anthropic-beta" not in request.headers
    assert "sk-ant-1" not in repr(request)


def test_request__plain__nothing_added() -> None:
    assert body_of(max_tokens=5) == {"model": BUDGETS, "max_tokens": 5, "messages": [USER]}
    assert body_of(max_tokens=5, stream=True)["stream"] is True


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"betas": ["a-1", "b-2"]}, "a-1,b-2"),
        ({"betas": "a-1, b-2"}, "a-1,b-2"),
        ({"mcp_servers": [{"type": "url", "url": "https://m.test", "name": "m"}]}, "mcp-client-2025-11-20"),
        ({"mcp_servers": [{"url": "https://m.test", "tool_configuration": {}}]}, "mcp-client-2025-04-04"),
        ({"context_management": {"edits": []}}, "context-management-2025-06-27"),
        ({"context_management": {}, "betas": ["context-management-2025-06-27"]}, "context-management-2025-06-27"),
        ({"container": {"skills": [{"skill_id": "pdf"}]}}, "skills-2025-10-02"),
        ({"speed": "fast"}, "fast-mode-2026-02-01"),
        ({"tools": [{"type": "computer_20250124", "name": "computer"}]}, "computer-use-2025-01-24"),
        (
            {"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "file_1"}}]}]},
            "files-api-2025-04-14",
        ),
    ],
)
def test_request__beta_feature__announced(fields: dict[str, Any], expected: str) -> None:
    request = upstream(**fields)
    assert request.headers["anthropic-beta"] == expected
    assert not request.warnings
    assert "betas" not in json.loads(request.body)


@pytest.mark.parametrize(
    "fields",
    [
        {"container": "container_1"},
        {"inference_geo": "us"},
        {"cache_control": {"type": "ephemeral"}},
        {"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}},
    ],
)
def test_request__native_field__as_it_is(fields: dict[str, Any]) -> None:
    assert fields.items() <= body_of(**fields).items()
    assert not upstream(**fields).warnings


@pytest.mark.parametrize(
    ("model", "expected"),
    [(BUDGETS, 64000), (OLD, 8192), ("claude-3-5-haiku-latest", 8192), ("claude-unheard-of", 4096)],
)
def test_max_tokens__missing__the_models_maximum(model: str, expected: int) -> None:
    assert body_of(model)["max_tokens"] == expected


def test_max_tokens__above_the_models_maximum__lowered_and_named() -> None:
    request = upstream(max_tokens=100_000)
    assert json.loads(request.body)["max_tokens"] == 64_000
    assert request.warnings == ("max_tokens: lowered to 64000, the most this model writes",)
    assert body_of("claude-unheard-of", max_tokens=100_000)["max_tokens"] == 100_000


def test_temperature__above_one__lowered_and_named() -> None:
    request = upstream(temperature=1.7)
    assert json.loads(request.body)["temperature"] == 1
    assert request.warnings == ("temperature: lowered to 1, the highest that anthropic takes",)
    assert body_of(temperature=0)["temperature"] == 0


@pytest.mark.parametrize(
    ("model", "fields", "sent", "named"),
    [
        (OLD, {"temperature": 0.5, "top_p": 0.9, "top_k": 5}, {"temperature", "top_p", "top_k"}, []),
        (BUDGETS, {"temperature": 0.5, "top_p": 0.9}, {"temperature"}, ["top_p"]),
        (BUDGETS, {"temperature": 0.5, "top_p": 1}, {"temperature"}, []),
        (BUDGETS, {"top_p": 0.9}, {"top_p"}, []),
        (ADAPTIVE, {"temperature": 0.5, "top_p": 0.9, "top_k": 5}, set(), ["temperature", "top_k", "top_p"]),
        (ADAPTIVE, {"temperature": 1, "top_p": 1}, set(), []),
        (BUDGETS, {"temperature": 1, "reasoning_effort": "low"}, {"temperature"}, []),
        (
            BUDGETS,
            {"temperature": 0.5, "top_k": 5, "top_p": 0.5, "reasoning_effort": "low"},
            set(),
            ["temperature", "top_k", "top_p"],
        ),
        (BUDGETS, {"top_p": 0.97, "reasoning_effort": "low"}, {"top_p"}, []),
    ],
)
def test_sampling__what_the_model_takes__the_rest_is_named(
    model: str, fields: dict[str, Any], sent: set[str], named: list[str]
) -> None:
    request = upstream(model, **fields)
    assert set(json.loads(request.body)) & {"temperature", "top_p", "top_k"} == sent
    assert [warning.partition(":")[0] for warning in request.warnings] == named


def test_messages__names_and_details__named() -> None:
    detailed = {"type": "image_url", "image_url": {"url": "https://i.test/a.png", "detail": "high"}}
    usual = {"type": "image_url", "image_url": {"url": "https://i.test/a.png", "detail": "auto"}}
    request = upstream(messages=[{"role": "user", "name": "Ada", "content": [detailed]}])
    assert [warning.partition(":")[0] for warning in request.warnings] == ["messages.name", "messages.image_url.detail"]
    tool = [*looped("c"), {"role": "user", "content": [usual]}]
    tool[1]["name"] = "ping"
    assert not upstream(messages=[USER, *tool]).warnings


def test_cache__openais_breakpoint__the_vendors_marker() -> None:
    part = {"type": "text", "text": "long", "prompt_cache_breakpoint": {"mode": "explicit"}}
    assert content_of(part)[0]["cache_control"] == {"type": "ephemeral"}


@pytest.mark.parametrize(
    ("options", "more"),
    [
        ({}, {}),
        ({"search_context_size": "low"}, {"max_uses": 1}),
        ({"search_context_size": "medium"}, {"max_uses": 5}),
        ({"search_context_size": "high", "user_location": None}, {"max_uses": 10}),
        (
            {
                "user_location": {
                    "type": "approximate",
                    "approximate": {"city": "Bern", "country": "CH", "region": None},
                }
            },
            {"user_location": {"type": "approximate", "city": "Bern", "country": "CH"}},
        ),
        (
            {"user_location": {"type": "approximate", "timezone": "Europe/Zurich"}},
            {"user_location": {"type": "approximate", "timezone": "Europe/Zurich"}},
        ),
    ],
)
def test_web_search__requested__the_vendors_tool(options: dict[str, Any], more: dict[str, Any]) -> None:
    search = {"type": "web_search_20250305", "name": "web_search", **more}
    request = upstream(web_search_options=options, tools=[PING])
    assert json.loads(request.body)["tools"] == [PING_THERE, search]
    assert not request.warnings
    assert body_of(web_search_options=options)["tools"] == [search]


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"web_search_options": {"search_context_size": "vast"}}, "web_search_options.search_context_size"),
        ({"web_search_options": {"user_location": "Bern"}}, "web_search_options.user_location"),
        ({"web_search_options": {"of_tomorrow": 1}}, "web_search_options.of_tomorrow"),
        (
            {"web_search_options": {}, "tools": [{"type": "web_search_20260318", "name": "web_search"}]},
            "web_search_options",
        ),
    ],
)
def test_web_search__what_has_no_place_there__named(fields: dict[str, Any], named: str) -> None:
    request = upstream(**fields)
    assert [warning.partition(":")[0] for warning in request.warnings] == [named]
    assert len(json.loads(request.body)["tools"]) == 1


def test_stop__blank_ones__left_out_and_named() -> None:
    request = upstream(stop=["END", "\n"], stop_sequences=["STOP"])
    assert json.loads(request.body)["stop_sequences"] == ["END", "STOP"]
    assert request.warnings == ("stop: dropped, anthropic takes no sequence of white space alone",)
    assert body_of(stop="END")["stop_sequences"] == ["END"]


@pytest.mark.parametrize(
    ("fields", "expected", "named"),
    [
        ({"user": "u"}, {"user_id": "u"}, []),
        ({"safety_identifier": "s"}, {"user_id": "s"}, []),
        ({"metadata": {"user_id": "m"}, "user": "u"}, {"user_id": "m"}, []),
        ({"metadata": {"team": "blue"}, "user": "u"}, {"user_id": "u"}, ["metadata"]),
        ({"metadata": {}}, None, []),
        ({"user": "ada@example.com"}, None, ["user"]),
        ({"metadata": {"user_id": "+49 (0) 30 1234567"}}, None, ["user"]),
        ({"user": "x" * 257}, None, ["user"]),
        ({"user": "1234567890"}, {"user_id": "1234567890"}, []),
    ],
)
def test_metadata__the_users_id(fields: dict[str, Any], expected: Any, named: list[str]) -> None:
    request = upstream(**fields)
    assert json.loads(request.body).get("metadata") == expected
    assert [warning.partition(":")[0] for warning in request.warnings] == named


@pytest.mark.parametrize(
    ("tier", "expected", "named"),
    [("auto", "auto", []), ("default", "standard_only", []), ("flex", None, ["service_tier"])],
)
def test_service_tier__in_the_vendors_words(tier: str, expected: str | None, named: list[str]) -> None:
    request = upstream(service_tier=tier)
    assert json.loads(request.body).get("service_tier") == expected
    assert [warning.partition(":")[0] for warning in request.warnings] == named


@pytest.mark.parametrize(
    "name",
    [
        "seed",
        "presence_penalty",
        "frequency_penalty",
        "logit_bias",
        "logprobs",
        "store",
        "prediction",
        "safetySettings",
    ],
)
def test_parameter__without_counterpart__named(name: str) -> None:
    fields: dict[str, Any] = {name: {"x": 1}}
    request = upstream(**fields)
    assert name not in json.loads(request.body)
    assert request.warnings == (f"{name}: dropped, anthropic has no counterpart",)


def test_parameter__without_effect__dropped_without_a_warning() -> None:
    request = upstream(n=1, presence_penalty=0, logprobs=False, store=False, modalities=["text"], seed=None)
    assert set(json.loads(request.body)) == {"model", "max_tokens", "messages"}
    assert not request.warnings


@pytest.mark.parametrize("fields", [{"n": 2}, {"modalities": ["text", "audio"]}])
def test_parameter__that_would_change_the_kind__refused(fields: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedParameterError) as caught:
        upstream(**fields)
    assert caught.value.parameter in fields
    assert caught.value.provider == "anthropic"


@pytest.mark.parametrize(
    "fields",
    [
        {"service_tier": ["flex"]},
        {"stop_sequences": [1, "END"]},
        {"stop_sequences": "END"},
        {"mcp_servers": 7},
        {"mcp_servers": [7]},
        {"metadata": ["x"]},
        {"container": 7},
        {"betas": {"x": 1}},
        {"output_config": "high"},
        {"output_format": 7},
        {"messages": [{"role": "user", "content": [{"type": "input_audio", "input_audio": "UklGRg=="}]}]},
        {"messages": [{"role": "user", "content": [{"type": ["image"], "image": {}}]}]},
        {"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": 7}}]}]},
    ],
    ids=str,
)
def test_parameter__of_an_odd_type__a_request_or_a_refusal(fields: dict[str, Any]) -> None:
    """The vendor's own fields are not validated before they reach the adapter."""
    try:
        assert json.loads(upstream(**fields).body)["messages"]
    except UnsupportedParameterError as refusal:
        assert refusal.parameter in fields
