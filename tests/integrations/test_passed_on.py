"""Tests that what needs no change costs nothing: the very object passes on, and an address is made once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from integrations.providers.usage import Usage
from integrations.registry import adapter_for
from tests.integrations.exchanges import chat_request, completion, credentials
from tests.tables.cases import tabled


@tabled
def test_request__in_the_vendors_words__the_same_bytes(provider: str, fields: dict[str, Any]) -> None:
    request = chat_request("m", **fields)
    assert adapter_for(provider).build_request(request, credentials(provider)).body is request.body


@tabled
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
