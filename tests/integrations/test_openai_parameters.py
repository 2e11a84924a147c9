"""Tests top-level fields at providers of the OpenAI dialect: translated, dropped with a warning, or refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from integrations.providers.base import UpstreamRequest
from integrations.providers.errors import UnsupportedParameterError
from integrations.registry import adapter_for
from tests.integrations.exchanges import chat_request, credentials

TOOL: dict[str, Any] = {
    "type": "function",
    "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}},
}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}
THINKING = {"type": "enabled", "budget_tokens": 2048}
OFF = {"type": "disabled"}


def build(provider: str, model: str = "m-1", *, crosses_vendor: bool = False, **fields: Any) -> UpstreamRequest:
    request = replace(chat_request(model, **fields), crosses_vendor=crosses_vendor)
    return adapter_for(provider).build_request(request, credentials(provider, "https://upstream.test/v1"))


def parameters_of(upstream: UpstreamRequest) -> dict[str, Any]:
    body = json.loads(upstream.body)
    return {name: value for name, value in body.items() if name not in ("model", "messages")}


@pytest.mark.parametrize(
    ("provider", "model", "thinking", "expected"),
    [
        ("openai", "o3-mini", THINKING, {"reasoning_effort": "low"}),
        ("azure_openai", "gpt-5", {"type": "adaptive"}, {"reasoning_effort": "medium"}),
        ("openai", "gpt-4o", OFF, {}),
        ("openrouter", "a/b", THINKING, {"reasoning": {"max_tokens": 2048}}),
        ("openrouter", "a/b", {"type": "adaptive"}, {"reasoning": {"enabled": True}}),
        ("openrouter", "a/b", OFF, {"reasoning": {"enabled": False}}),
        ("snowflake", "claude-sonnet-4-5", THINKING, {"reasoning": {"effort": "low"}}),
        ("snowflake", "claude-sonnet-4-5", OFF, {}),
        ("openai", "gpt-5.1", OFF, {"reasoning_effort": "none"}),
        ("groq", "qwen/qwen3-32b", OFF, {"reasoning_effort": "none"}),
        ("cerebras", "zai-glm-4.7", OFF, {"reasoning_effort": "none"}),
        ("ollama", "qwen3:8b", OFF, {"reasoning_effort": "none"}),
        ("together", "zai-org/GLM-5", THINKING, {"reasoning": {"enabled": True}}),
        ("together", "zai-org/GLM-5", OFF, {"reasoning": {"enabled": False}}),
        ("together", "openai/gpt-oss-120b", THINKING, {"reasoning_effort": "low"}),
        ("groq", "openai/gpt-oss-20b", THINKING, {"reasoning_effort": "low"}),
        ("groq", "llama-3.3-70b-versatile", OFF, {}),
        ("cerebras", "gpt-oss-120b", THINKING, {"reasoning_effort": "low"}),
        ("xai", "grok-3-mini", THINKING, {"reasoning_effort": "low"}),
        ("perplexity", "sonar-reasoning-pro", THINKING, {"reasoning_effort": "low"}),
        ("ollama", "gpt-oss:20b", THINKING, {"reasoning_effort": "low"}),
        ("deepseek", "deepseek-chat", THINKING, {"thinking": THINKING}),
        ("zai", "glm-4.6", OFF, {"thinking": OFF}),
        ("fireworks", "accounts/fireworks/models/x", THINKING, {"thinking": THINKING}),
    ],
)
def test_thinking__in_each_providers_words__nothing_named(
    provider: str, model: str, thinking: dict[str, Any], expected: dict[str, Any]
) -> None:
    upstream = build(provider, model, thinking=thinking)
    assert parameters_of(upstream) == expected
    assert not upstream.warnings


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("openai", "gpt-4o"),
        ("groq", "llama-3.3-70b-versatile"),
        ("xai", "grok-4"),
        ("together", "meta-llama/Llama-3.3"),
    ],
)
def test_thinking__at_a_model_that_cannot__dropped_and_named(provider: str, model: str) -> None:
    upstream = build(provider, model, thinking=THINKING)
    assert parameters_of(upstream) == {}
    assert upstream.warnings == (f"thinking: dropped, {model} has no counterpart",)


def test_thinking__beside_the_providers_own_word__that_one_counts() -> None:
    upstream = build("openai", "o3", thinking=THINKING, reasoning_effort="high")
    assert parameters_of(upstream) == {"reasoning_effort": "high"}
    assert not upstream.warnings
    upstream = build("openrouter", "a/b", thinking=THINKING, reasoning={"effort": "high"})
    assert parameters_of(upstream) == {"reasoning": {"effort": "high"}}
    assert upstream.warnings[0].startswith("thinking: dropped")


def test_thinking__switched_off_where_it_always_is_on__named() -> None:
    upstream = build("openai", "o3", thinking=OFF)
    assert parameters_of(upstream) == {}
    assert upstream.warnings == ("thinking: dropped, the model always reasons",)


@pytest.mark.parametrize("provider", ["groq", "deepseek", "perplexity", "cerebras", "zai", "ollama"])
def test_n__where_there_is_one_answer__refused(provider: str) -> None:
    with pytest.raises(UnsupportedParameterError, match="n: ") as caught:
        build(provider, n=2)
    assert caught.value.parameter == "n"
    assert parameters_of(build(provider, n=1)) == {"n": 1}
    assert not build(provider, n=1).warnings


@pytest.mark.parametrize("provider", ["deepseek", "zai"])
def test_schema__where_there_is_none__refused(provider: str) -> None:
    with pytest.raises(UnsupportedParameterError, match="response_format"):
        build(provider, response_format=SCHEMA)
    plain: dict[str, Any] = {"type": "json_object"}
    assert parameters_of(build(provider, response_format=plain)) == {"response_format": plain}


@pytest.mark.parametrize("provider", ["zai", "ollama"])
def test_tool_choice__where_the_model_chooses__named_or_acted_on(provider: str) -> None:
    tools: dict[str, Any] = {"tools": [TOOL]}
    assert parameters_of(build(provider, **tools, tool_choice="auto")) == {**tools, "tool_choice": "auto"}
    none = build(provider, **tools, tool_choice="none", parallel_tool_calls=False)
    assert (parameters_of(none), none.warnings) == ({}, ())
    required = build(provider, **tools, tool_choice="required")
    assert parameters_of(required) == {**tools, "tool_choice": "required"}
    assert required.warnings == (f"tool_choice: ignored by {provider}",)
    fallback = build(provider, crosses_vendor=True, **tools, tool_choice="required")
    assert parameters_of(fallback) == tools
    assert fallback.warnings == (f"tool_choice: dropped, {provider} has no counterpart",)


@pytest.mark.parametrize("provider", ["deepseek", "perplexity", "zai", "ollama"])
def test_limit__where_only_the_old_name_is_known__renamed(provider: str) -> None:
    assert parameters_of(build(provider, max_completion_tokens=5)) == {"max_tokens": 5}
    assert parameters_of(build(provider, max_tokens=5)) == {"max_tokens": 5}


@pytest.mark.parametrize(
    ("provider", "fields"),
    [
        ("groq", {"logprobs": True, "top_logprobs": 2, "logit_bias": {"1": 1}}),
        ("cerebras", {"frequency_penalty": 0.5, "presence_penalty": 0.5, "logit_bias": {"1": 1}}),
    ],
)
def test_parameters__that_a_provider_refuses__dropped_and_named(provider: str, fields: dict[str, Any]) -> None:
    upstream = build(provider, **fields)
    assert parameters_of(upstream) == {}
    assert sorted(warning.partition(":")[0] for warning in upstream.warnings) == sorted(fields)


@pytest.mark.parametrize(
    ("provider", "fields"),
    [
        ("ollama", {"logit_bias": {"1": 1}, "user": "u"}),
        ("zai", {"logprobs": True, "frequency_penalty": 0.5}),
        ("deepseek", {"logit_bias": {"1": 1}}),
        ("perplexity", {"logprobs": True, "top_logprobs": 3}),
    ],
)
def test_parameters__that_a_provider_ignores__named_and_left_out_of_a_fallback(
    provider: str, fields: dict[str, Any]
) -> None:
    for crosses_vendor, expected in ((False, fields), (True, {})):
        upstream = build(provider, crosses_vendor=crosses_vendor, **fields)
        assert parameters_of(upstream) == expected
        assert sorted(warning.partition(":")[0] for warning in upstream.warnings) == sorted(fields)


def test_parameters__that_ask_for_nothing__dropped_in_silence() -> None:
    upstream = build("groq", logprobs=False, logit_bias={}, top_logprobs=None)
    assert (parameters_of(upstream), upstream.warnings) == ({}, ())


VENDOR_FIELDS: dict[str, Any] = {
    "safetySettings": [],
    "top_k": 5,
    "betas": ["x"],
    "metadata": {"user_id": "u"},
    "store": False,
    "service_tier": "flex",
    "temperature": 0.5,
}


def test_direct__fields_of_any_vendor__as_they_came() -> None:
    for provider in ("openai", "groq", "vllm", "openai_compatible"):
        upstream = build(provider, **VENDOR_FIELDS)
        assert (parameters_of(upstream), upstream.warnings) == (VENDOR_FIELDS, ())


def test_fallback__fields_of_another_vendor__dropped_and_named() -> None:
    upstream = build("openai", crosses_vendor=True, **{**VENDOR_FIELDS, "safetySettings": [{"a": 1}]})
    assert parameters_of(upstream) == {"store": False, "service_tier": "flex", "temperature": 0.5}
    assert upstream.warnings == (
        "safetySettings: dropped, openai has no counterpart",
        "top_k: dropped, openai has no counterpart",
        "betas: dropped, openai has no counterpart",
        "metadata: dropped, it needs store",
    )
    assert parameters_of(build("vllm", crosses_vendor=True, **VENDOR_FIELDS)) == {"top_k": 5, "temperature": 0.5}


def test_fallback__metadata_of_a_stored_answer__kept() -> None:
    fields: dict[str, Any] = {"store": True, "metadata": {"a": "b"}}
    assert parameters_of(build("azure_openai", crosses_vendor=True, **fields)) == fields


@pytest.mark.parametrize(
    "fields",
    [{"modalities": ["text", "audio"]}, {"audio": {"voice": "alloy", "format": "wav"}}],
)
def test_fallback__what_makes_another_kind_of_answer__refused(fields: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedParameterError) as caught:
        build("groq", crosses_vendor=True, **fields)
    assert caught.value.parameter in fields
    assert parameters_of(build("openai", crosses_vendor=True, **fields)) == fields
    assert parameters_of(build("groq", crosses_vendor=True, modalities=["text"])) == {}


@pytest.mark.parametrize(
    ("provider", "given", "taken"),
    [
        ("openai", {"cache_control": {"type": "ephemeral"}}, {}),
        ("azure_openai", {"cache_control": {"type": "ephemeral"}}, {}),
        ("groq", {"cache_control": {"type": "ephemeral"}}, {}),
        ("openrouter", {"cache_control": {"type": "ephemeral"}}, {"cache_control": {"type": "ephemeral"}}),
        ("openai_compatible", {"cache_control": {"type": "ephemeral"}}, {"cache_control": {"type": "ephemeral"}}),
    ],
    ids=str,
)
def test_tools__with_cache_markers__where_they_are_taken(
    provider: str, given: dict[str, Any], taken: dict[str, Any]
) -> None:
    inside = {"type": "function", "function": {**TOOL["function"], **given}}
    upstream = build(provider, tools=[{**TOOL, **given}, inside, TOOL])
    fitted = {"type": "function", "function": {**TOOL["function"], **taken}}
    assert parameters_of(upstream) == {"tools": [{**TOOL, **taken}, fitted, TOOL]}
    assert not upstream.warnings


@pytest.mark.parametrize("crosses_vendor", [False, True])
@pytest.mark.parametrize("options", [{}, {"search_context_size": "low"}], ids=str)
def test_web_search_options__the_vendors_search_or_refused(options: dict[str, Any], crosses_vendor: bool) -> None:
    for provider in ("openai", "perplexity"):
        upstream = build(provider, crosses_vendor=crosses_vendor, web_search_options=options)
        assert parameters_of(upstream) == {"web_search_options": options}
    with pytest.raises(UnsupportedParameterError, match="web_search_options: groq"):
        build("groq", crosses_vendor=crosses_vendor, web_search_options=options)
    upstream = build("dashscope", crosses_vendor=crosses_vendor, web_search_options=options)
    assert parameters_of(upstream) == {"enable_search": True}
    assert len(upstream.warnings) == len(options)
    assert parameters_of(build("groq", crosses_vendor=crosses_vendor, web_search_options=None)) == {}


def test_fallback__web_search_options_where_it_is_not_known__refused() -> None:
    assert parameters_of(build("vllm", web_search_options={})) == {"web_search_options": {}}
    with pytest.raises(UnsupportedParameterError, match="web_search_options: vllm does not know it"):
        build("vllm", crosses_vendor=True, web_search_options={})


def test_fallback__tools_of_another_vendor__refused_and_markers_left_out() -> None:
    marked = {**TOOL, "cache_control": {"type": "ephemeral"}}
    assert parameters_of(build("openai", crosses_vendor=True, tools=[marked, TOOL])) == {"tools": [TOOL, TOOL]}
    assert parameters_of(build("openrouter", crosses_vendor=True, tools=[marked])) == {"tools": [marked]}
    search = {"type": "web_search_20250305", "name": "web_search"}
    with pytest.raises(UnsupportedParameterError, match="tools: groq has no tool of type 'web_search_20250305'"):
        build("groq", crosses_vendor=True, tools=[TOOL, search])
    assert parameters_of(build("groq", tools=[TOOL, search])) == {"tools": [TOOL, search]}
    custom = {"type": "custom", "custom": {"name": "c"}}
    assert parameters_of(build("azure_openai", crosses_vendor=True, tools=[custom])) == {"tools": [custom]}


def test_fallback__to_a_reasoning_model__as_it_wants_it() -> None:
    fields: dict[str, Any] = {"max_tokens": 9, "temperature": 0.2, "stop": ["a"], "reasoning_effort": "low"}
    upstream = build("openai", "gpt-5-mini", crosses_vendor=True, **fields)
    assert parameters_of(upstream) == {"max_completion_tokens": 9, "reasoning_effort": "low"}
    assert upstream.warnings == (
        "temperature: dropped, gpt-5-mini does not take it",
        "stop: dropped, gpt-5-mini does not take it",
    )
    assert parameters_of(build("openai", "gpt-5-mini", **fields)) == fields
    assert parameters_of(build("openai", "gpt-5-chat-latest", crosses_vendor=True, temperature=0.2)) == {
        "temperature": 0.2
    }


def test_fallback__effort_at_a_model_that_does_not_reason__dropped_and_named() -> None:
    upstream = build("openai", "gpt-4o", crosses_vendor=True, reasoning_effort="low")
    assert (parameters_of(upstream), upstream.warnings) == (
        {},
        ("reasoning_effort: dropped, gpt-4o has no counterpart",),
    )


def test_fallback__plain_stream__nothing_named() -> None:
    upstream = build("groq", crosses_vendor=True, stream=True, temperature=0.5, tools=[TOOL])
    assert parameters_of(upstream) == {
        "stream": True,
        "temperature": 0.5,
        "tools": [TOOL],
        "stream_options": {"include_usage": True},
    }
    assert not upstream.warnings


@pytest.mark.parametrize(
    ("provider", "model", "effort", "taken"),
    [
        ("openai", "o3", "max", "high"),
        ("openai", "o3", "none", "low"),
        ("openai", "gpt-5", "minimal", "minimal"),
        ("openai", "gpt-5", "xhigh", "high"),
        ("openai", "gpt-5.1", "minimal", "low"),
        ("openai", "gpt-5.1", "xhigh", "high"),
        ("azure_openai", "gpt-5.2", "max", "xhigh"),
        ("openai", "gpt-6", "max", "max"),
        ("groq", "openai/gpt-oss-120b", "xhigh", "high"),
        ("ollama", "qwen3:8b", "none", "none"),
        ("openrouter", "a/b", "max", "max"),
        ("openai", "gpt-5", "tomorrows", "tomorrows"),
    ],
)
def test_fallback__reasoning_effort__the_closest_level_that_the_model_takes(
    provider: str, model: str, effort: str, taken: str
) -> None:
    upstream = build(provider, model, crosses_vendor=True, reasoning_effort=effort)
    assert parameters_of(upstream) == {"reasoning_effort": taken}
    assert len(upstream.warnings) == (effort != taken)
    assert parameters_of(build(provider, model, reasoning_effort=effort)) == {"reasoning_effort": effort}


@pytest.mark.parametrize(
    ("thinking", "taken"),
    [
        ({"type": "adaptive", "display": "omitted"}, {"type": "enabled"}),
        ({"type": "between_tools"}, {"type": "disabled"}),
        ({"type": "enabled", "budget_tokens": 2048}, {"type": "enabled", "budget_tokens": 2048}),
    ],
    ids=str,
)
def test_fallback__thinking_in_claudes_words__in_common_ones(thinking: dict[str, Any], taken: dict[str, Any]) -> None:
    upstream = build("deepseek", "deepseek-chat", crosses_vendor=True, thinking=thinking)
    assert parameters_of(upstream) == {"thinking": taken}
    assert ("display" in thinking) == ("thinking.display: dropped, deepseek has no counterpart" in upstream.warnings)
    assert parameters_of(build("deepseek", "deepseek-chat", thinking=thinking)) == {"thinking": thinking}
    assert parameters_of(build("vllm", crosses_vendor=True, thinking=thinking)) == {"thinking": thinking}


def test_thinking__of_a_type_of_tomorrow__passes_where_the_field_is_known_and_is_refused_elsewhere() -> None:
    thinking = {"type": "tomorrows"}
    assert parameters_of(build("deepseek", thinking=thinking)) == {"thinking": thinking}
    for provider, crosses_vendor in (("openai", False), ("openrouter", False), ("deepseek", True)):
        with pytest.raises(UnsupportedParameterError, match="thinking: type 'tomorrows'"):
            build(provider, crosses_vendor=crosses_vendor, thinking=thinking)
