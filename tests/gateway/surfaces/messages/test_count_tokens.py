"""Tests the surface of the count of tokens."""

from __future__ import annotations

import json

import pytest

from core.errors import ValidationError
from gateway.protocol.wire import decode_request
from gateway.surfaces.messages.surface import COUNT_TOKENS
from tests.gateway.surfaces.messages.clients import ASK, REQUEST_ID, client_of, completion

TOOL = {"name": "ping", "input_schema": {"type": "object"}}


def test_read__no_limit_of_tokens__the_prompt_as_a_chat_completion() -> None:
    body = json.dumps({"model": "m", "system": "Be brief.", "messages": ASK["messages"], "tools": [TOOL]}).encode()
    read = COUNT_TOKENS.read(body)
    decode_request(read.body)
    assert json.loads(read.body) == {
        "model": "m",
        "messages": [{"role": "system", "content": "Be brief."}, *ASK["messages"]],
        "tools": [{"type": "function", "function": {"name": "ping", "parameters": {"type": "object"}}}],
    }


@pytest.mark.parametrize("fields", [{"model": "m"}, {"messages": ASK["messages"]}])
def test_read__something_missing__named(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match=r"^(messages|model): this field is required"):
        COUNT_TOKENS.read(json.dumps(fields).encode())


def test_answer__tokens_of_the_prompt__cached_ones_included() -> None:
    usage = {"prompt_tokens": 30, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 20}}
    read = COUNT_TOKENS.read(json.dumps({"model": "m", "messages": ASK["messages"]}).encode())
    body = COUNT_TOKENS.answer(read, completion({"content": ""}, usage=usage), REQUEST_ID)
    client = client_of(200, body, "application/json")
    assert client.messages.count_tokens(model="m", messages=ASK["messages"]).input_tokens == 30
