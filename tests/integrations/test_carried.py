"""Claude's own blocks on the way to other vendors: texts where there is something to read in them, else named."""

from __future__ import annotations

import json
from typing import Any

from integrations.providers.base import ChatRequest
from integrations.providers.common.carried import carried
from tests.tables.cases import tabled

Json = dict[str, Any]
TEXT: Json = {"type": "text", "text": "Shall I?"}


def sent(*blocks: Json, content: Any = "Shall I?") -> ChatRequest:
    message = {"role": "assistant", "content": content, "provider_specific_fields": {"content": [*blocks]}}
    body = json.dumps({"model": "qwen3", "messages": [{"role": "user", "content": "Hello"}, message]}).encode()
    return ChatRequest("qwen3", False, body, json.loads(body))


@tabled
def test_block__with_something_to_read__is_a_text_before_the_answer(block: Json, words: list[str]) -> None:
    message = carried(sent(block, TEXT)).fields["messages"][1]

    assert message.keys() == {"role", "content"}
    assert message["content"].endswith("Shall I?")
    assert [word for word in words if word not in message["content"]] == []


@tabled
def test_block__with_nothing_to_read__is_named(block: Json) -> None:
    request = carried(sent(block, TEXT))

    assert request.fields["messages"][1]["content"] == "Shall I?"
    assert [block["type"] in warning for warning in request.warnings] == [True]


def test_blocks__beside_parts__stand_before_them() -> None:
    parts = [{"type": "text", "text": "Shall I?", "cache_control": {"type": "ephemeral"}}]

    message = carried(sent({"type": "compaction", "content": "Nord"}, TEXT, content=parts)).fields["messages"][1]

    assert message["content"][1:] == parts
    assert "Nord" in message["content"][0]["text"]


@tabled
def test_blocks__that_a_message_expresses_or_of_other_vendors__change_nothing(blocks: list[Any]) -> None:
    request = sent(*blocks)

    assert carried(request) is request
