"""Tests the translation of whole answers of the Messages API to chat completions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from integrations.providers.anthropic import ADAPTER
from integrations.providers.base import ParsedResponse
from integrations.providers.errors import ProviderError
from tests.integrations.exchanges import chat_request, credentials

TEXT = {"type": "text", "text": "Hi"}


def answer(*content: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5",
        "content": list(content),
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 9, "output_tokens": 4},
        **changes,
    }


def parsed(body: Any) -> ParsedResponse:
    data = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
    return ADAPTER.parse_response(chat_request("claude-sonnet-5"), data)


def message_of(*content: dict[str, Any], **changes: Any) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(parsed(answer(*content, **changes)).body)["choices"][0]["message"]
    return message


def test_reasoning__signed_and_redacted__text_and_what_comes_back() -> None:
    message = message_of(
        {"type": "thinking", "thinking": "One.", "signature": "s1"},
        {"type": "redacted_thinking", "data": "d2"},
        {"type": "thinking", "thinking": "", "signature": "s3"},
        TEXT,
    )
    assert message["reasoning_content"] == "One."
    assert message["reasoning_details"] == [
        {"type": "reasoning.text", "text": "One.", "signature": "s1", "format": "anthropic-claude-v1", "index": 0},
        {"type": "reasoning.encrypted", "data": "d2", "format": "anthropic-claude-v1", "index": 1},
        {"type": "reasoning.text", "text": "", "signature": "s3", "format": "anthropic-claude-v1", "index": 2},
    ]


def test_answer__error_with_the_key_in_it__redacted() -> None:
    ADAPTER.build_request(chat_request("claude-sonnet-5"), credentials("anthropic", key="a-key-of-an-odd-form"))
    with pytest.raises(ProviderError) as caught:
        parsed({"type": "error", "error": {"type": "api_error", "message": "bad a-key-of-an-odd-form"}})
    assert "a-key-of-an-odd-form" not in caught.value.message
