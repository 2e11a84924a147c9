"""Tests the messages of a request to the Messages API as those of a chat completion."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.protocol.wire import decode_request
from gateway.surfaces.messages.surface import SURFACE
from integrations.providers.anthropic import ADAPTER
from tests.gateway.surfaces.messages.clients import ask, chat_messages, chat_request
from tests.integrations.exchanges import credentials
from tests.tables.cases import tabled

PNG = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
PDF = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}

Json = dict[str, Any]


def user(*blocks: Json) -> Json:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Json) -> Json:
    return {"role": "assistant", "content": list(blocks)}


def text(words: str, **more: Any) -> Json:
    return {"type": "text", "text": words, **more}


def sent_again(*messages: Json) -> list[Json]:
    """Returns the messages that Anthropic's adapter makes of the chat completion."""
    read = SURFACE.read(ask(model="claude-sonnet-4-5", messages=[*messages]))
    decode_request(read.body)
    built = ADAPTER.build_request(chat_request(read.body), credentials("anthropic"))
    made: list[Json] = json.loads(built.body)["messages"]
    return made


def test_size__long_text__the_clients_message_is_named() -> None:
    with pytest.raises(Exception, match=r"^messages\[1\]\.content: 1200000 bytes") as caught:
        chat_messages(user(text("x")), user(text("a" * 1_200_000)))
    assert getattr(caught.value, "code", "") == "message_too_large"


def test_size__large_files__no_text() -> None:
    data = "A" * 3_000_000
    cited = {"type": "document", "source": {**PDF, "data": data}, "citations": {"enabled": True}}
    read = SURFACE.read(ask(messages=[user(cited, {"type": "image", "source": {**PNG, "data": data}})]))
    decode_request(read.body)


@tabled
def test_assistant__any_order_and_blocks__anthropic_gets_the_same_again(blocks: list[Json]) -> None:
    ids = [block["id"] for block in blocks if block["type"] == "tool_use"]
    results = [{"type": "tool_result", "tool_use_id": call_id, "content": "ok"} for call_id in ids]
    next_turn = user(text("Go on."))
    expected = [{"role": "user", "content": "Hello"}, assistant(*blocks)]
    made = sent_again(
        {"role": "user", "content": "Hello"}, assistant(*blocks), user(*results) if results else next_turn
    )
    assert made[:2] == expected
