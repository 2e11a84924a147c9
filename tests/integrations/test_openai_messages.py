"""Tests messages at providers of the OpenAI dialect: roles, media, and fields of other vendors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from integrations.providers.base import ChatRequest
from integrations.providers.errors import UnsupportedParameterError
from integrations.providers.openai.dialect import Dialect
from integrations.registry import adapter_for, providers
from tests.integrations.exchanges import chat_request, credentials
from tests.tables.cases import tabled

USER = {"role": "user", "content": "Hi"}
CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "weather", "arguments": "{}"},
    "extra_content": {"google": {"thought_signature": "x"}},
}
PLAIN_CALL = {name: value for name, value in CALL.items() if name != "extra_content"}
OF_OPENAI = [name for name in providers() if isinstance(adapter_for(name).traits, Dialect) and name != "mistral"]
STRICT = ("openai", "azure_openai", "groq", "deepseek", "xai", "together", "fireworks", "cerebras", "zai", "ollama")


def request_of(*messages: Mapping[str, Any], model: str = "m-1", **more: Any) -> ChatRequest:
    return replace(chat_request(model, messages=list(messages)), **more)


def sent(provider: str, *messages: Mapping[str, Any], model: str = "m-1", **more: Any) -> list[Any]:
    upstream = adapter_for(provider).build_request(
        request_of(*messages, model=model, **more), credentials(provider, "https://upstream.test/v1")
    )
    # Some vendors want the reasoning of calls, which these histories do not have.
    assert all(warning.startswith("thinking: disabled, ") for warning in upstream.warnings)
    messages_sent: list[Any] = json.loads(upstream.body)["messages"]
    return messages_sent


def user(*parts: Mapping[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(parts)}


def answer(**fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": "Hello", **fields}


def without_parameters(**fields: Any) -> list[dict[str, Any]]:
    call = {**PLAIN_CALL, "function": {"name": "weather", **fields}}
    return [USER, answer(tool_calls=[call]), {"role": "tool", "tool_call_id": "call_1", "content": "18"}]


@pytest.mark.parametrize("provider", OF_OPENAI)
@pytest.mark.parametrize("arguments", ["", "  ", "\n", None])
@pytest.mark.parametrize("crosses_vendor", [False, True])
def test_history__call_without_parameters__has_an_empty_object(
    provider: str, arguments: str | None, crosses_vendor: bool
) -> None:
    messages = sent(provider, *without_parameters(arguments=arguments), crosses_vendor=crosses_vendor)
    assert messages == without_parameters(arguments="{}")


def marked(**markers: Any) -> dict[str, Any]:
    """Returns a message with these markers on itself, on a part and on a call."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}, **markers}
    return answer(content=[{"type": "text", "text": "a", **markers}], tool_calls=[call], **markers)


@pytest.mark.parametrize("crosses_vendor", [False, True])
@tabled
def test_cache_markers__each_vendors_own_and_no_other(
    provider: str, given: dict[str, Any], taken: dict[str, Any], crosses_vendor: bool
) -> None:
    assert sent(provider, USER, marked(**given), crosses_vendor=crosses_vendor)[1] == marked(**taken)


TEXTS = st.text(max_size=20)
PARTS = st.lists(st.builds(lambda text: {"type": "text", "text": text}, TEXTS), min_size=1, max_size=3)
CONTENTS = st.one_of(TEXTS, PARTS)
MESSAGES = st.lists(
    st.one_of(
        st.builds(lambda content: {"role": "user", "content": content}, CONTENTS),
        st.builds(lambda content: {"role": "system", "content": content}, CONTENTS),
        st.builds(lambda content: {"role": "assistant", "content": content, "tool_calls": [PLAIN_CALL]}, CONTENTS),
        st.builds(lambda content: {"role": "tool", "tool_call_id": "call_1", "content": content}, CONTENTS),
    ),
    min_size=1,
    max_size=6,
)


@given(messages=MESSAGES, provider=st.sampled_from([*STRICT, "openrouter", "snowflake", "vllm"]))
def test_conversation__of_the_dialects_own_parts__the_same_bytes(messages: list[dict[str, Any]], provider: str) -> None:
    """The messages stay unchanged on a fallback too."""
    request = request_of(*messages)
    upstream = adapter_for(provider).build_request(request, credentials(provider, "https://upstream.test/v1"))
    assert upstream.body is request.body
    assert sent(provider, *messages, crosses_vendor=True) == messages


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "url", "text"]), inner),
    max_leaves=5,
)
ODD_PARTS = st.builds(
    lambda kind, value: {"type": kind, kind: value},
    st.sampled_from(["text", "image_url", "document_url", "file", "input_audio", "refusal"]),
    JSON,
)
ODD_MESSAGES = st.builds(
    lambda role, content, more: {**more, "role": role, "content": content},
    st.sampled_from(["system", "developer", "user", "assistant", "tool"]),
    st.lists(ODD_PARTS | JSON, max_size=3) | JSON,
    st.dictionaries(
        st.sampled_from(["tool_calls", "reasoning_details", "reasoning_content", "reasoning", "thinking_blocks"]), JSON
    ),
)


@given(
    messages=st.lists(ODD_MESSAGES | JSON, min_size=1, max_size=4),
    provider=st.sampled_from([*STRICT, "perplexity", "openrouter", "snowflake", "vllm"]),
    fields=st.dictionaries(
        st.sampled_from(["thinking", "tools", "tool_choice", "n", "response_format", "reasoning_effort", "metadata"]),
        JSON,
    ),
    crosses_vendor=st.booleans(),
)
def test_request__of_any_json__sent_or_refused(
    messages: list[Any], provider: str, fields: dict[str, Any], crosses_vendor: bool
) -> None:
    """A meaningless request is the provider's to refuse, and the adapter must not crash."""
    request = replace(chat_request("m-1", messages=messages, **fields), crosses_vendor=crosses_vendor)
    access = credentials(provider, "https://upstream.test/v1")
    try:
        adapter_for(provider).needs(request, access)
        upstream_request = adapter_for(provider).build_request(request, access)
    except UnsupportedParameterError as refused:
        assert refused.parameter in {"messages", *fields}
    else:
        assert json.loads(upstream_request.body)["model"] == "m-1"
