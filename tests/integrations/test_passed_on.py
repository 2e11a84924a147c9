"""Tests that what needs no change costs nothing: the very object passes on, and an address is made once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from integrations.providers.usage import Usage
from integrations.registry import adapter_for
from tests.integrations.exchanges import chat_request, completion, credentials
from tests.integrations.mistral_requests import USER, called, result

PING = {"type": "function", "function": {"name": "ping", "parameters": {"type": "object"}}}
PICTURE = [{"type": "image_url", "image_url": {"url": "https://x/a.png"}}]
THOUGHT = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}], "closed": True}]
BOTH_NAMES = {"role": "assistant", "content": "", "reasoning_content": "a", "reasoning": "b"}


@pytest.mark.parametrize(
    ("provider", "fields"),
    [
        ("openai", {"temperature": 0.50, "unknown_field": {"kept": [1.0, 1e2]}}),
        (
            "mistral",
            {
                "messages": [
                    {"role": "system", "content": "Be brief"},
                    {"role": "user", "content": PICTURE},
                    called("aB3dE6gH9"),
                    result("aB3dE6gH9"),
                ],
                "tools": [PING],
                "safe_prompt": True,
                "random_seed": 1,
                "field_of_tomorrow": {"x": 1.50},
            },
        ),
        (
            "mistral",
            {"messages": [USER, {"role": "assistant", "content": [*THOUGHT, {"type": "text", "text": "a"}]}, USER]},
        ),
    ],
)
def test_request__in_the_vendors_words__the_same_bytes(provider: str, fields: dict[str, Any]) -> None:
    request = chat_request("m", **fields)
    assert adapter_for(provider).build_request(request, credentials(provider)).body is request.body


@pytest.mark.parametrize(
    ("provider", "changes"),
    [
        ("openai", {"vendor": {"kept": True}}),
        ("mistral", {}),
        ("mistral", {"note": "thinking"}),
        ("vllm", {"choices": [{"index": 0, "message": BOTH_NAMES, "finish_reason": "stop"}]}),
    ],
)
def test_answer__in_openais_words__the_same_bytes(provider: str, changes: dict[str, Any]) -> None:
    body = json.dumps(completion(**changes), indent=1).encode()
    answer = adapter_for(provider).parse_response(chat_request(), body)
    assert answer.body is body
    assert (answer.model, answer.finish_reason) == ("gpt-4o-2024-08-06", "stop")
    assert answer.usage == Usage(prompt_tokens=9, completion_tokens=4)


@pytest.mark.parametrize("provider", ["openai", "cohere"])
def test_credentials__used_again__headers_made_once(provider: str) -> None:
    adapter, access = adapter_for(provider), credentials(provider, "https://proxy.example/v1/")
    first, second = (adapter.build_request(chat_request("m"), access) for _ in range(2))
    assert first.headers is second.headers
    rotated = adapter.build_request(chat_request("m"), credentials(provider, "https://proxy.example/v1", key="sk-new"))
    assert rotated.headers["authorization"] == "Bearer sk-new"
    assert rotated.url == first.url
