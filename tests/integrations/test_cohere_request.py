"""Tests requests to Cohere: address, parameters, tools and thinking."""

from __future__ import annotations

from typing import Any

import pytest

from integrations.providers.cohere import ADAPTER
from integrations.providers.errors import UnsupportedParameterError
from tests.integrations.cohere_requests import COMMAND_A, USER, built, data_url
from tests.integrations.exchanges import chat_request, credentials

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
PING = {"type": "function", "function": {"name": "ping", "description": "Pings", "parameters": SCHEMA}}


def test_endpoint__same_credentials__made_once() -> None:
    access = credentials("cohere")
    first, second = (ADAPTER.build_request(chat_request(COMMAND_A), access) for _ in range(2))
    assert first.headers is second.headers


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
