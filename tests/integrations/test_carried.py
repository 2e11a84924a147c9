"""Claude's own blocks on the way to other vendors: texts where there is something to read in them, else named."""

from __future__ import annotations

import json
from typing import Any

import pytest

from integrations.providers.base import ChatRequest
from integrations.providers.common.carried import carried

Json = dict[str, Any]
TEXT: Json = {"type": "text", "text": "Shall I?"}


def sent(*blocks: Json, content: Any = "Shall I?") -> ChatRequest:
    message = {"role": "assistant", "content": content, "provider_specific_fields": {"content": [*blocks]}}
    body = json.dumps({"model": "qwen3", "messages": [{"role": "user", "content": "Hello"}, message]}).encode()
    return ChatRequest("qwen3", False, body, json.loads(body))


@pytest.mark.parametrize(
    ("block", "words"),
    [
        ({"type": "compaction", "content": "It waits at Nord."}, ["It waits at Nord.", "summary"]),
        (
            {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "depot"}},
            ["web_search", "depot"],
        ),
        ({"type": "mcp_tool_result", "tool_use_id": "m1", "content": [{"type": "text", "text": "4 kg"}]}, ["4 kg"]),
        (
            {
                "type": "web_search_tool_result",
                "content": [
                    {"type": "web_search_result", "url": "https://a.test", "title": "Nord", "encrypted_content": "x"}
                ],
            },
            ["https://a.test", "Nord"],
        ),
        (
            {
                "type": "code_execution_tool_result",
                "content": {"type": "code_execution_result", "stdout": "42", "stderr": ""},
            },
            ["42"],
        ),
        (
            {
                "type": "web_fetch_tool_result",
                "content": {"type": "web_fetch_tool_result_error", "error_code": "too_long"},
            },
            ["too_long"],
        ),
    ],
    ids=lambda value: value["type"] if isinstance(value, dict) else "",
)
def test_block__with_something_to_read__is_a_text_before_the_answer(block: Json, words: list[str]) -> None:
    message = carried(sent(block, TEXT)).fields["messages"][1]

    assert message.keys() == {"role", "content"}
    assert message["content"].endswith("Shall I?")
    assert [word for word in words if word not in message["content"]] == []


@pytest.mark.parametrize(
    "block",
    [
        {"type": "compaction", "content": None, "encrypted_content": "x"},
        {"type": "advisor_tool_result", "content": {"type": "advisor_redacted_result", "encrypted_content": "x"}},
        {"type": "container_upload", "file_id": "f1"},
        {"type": "of_tomorrow", "text": "?"},
        {"type": "web_fetch_tool_result", "content": {"source": {"type": "base64", "data": "JVBERi0="}}},
    ],
    ids=lambda block: str(block["type"]),
)
def test_block__with_nothing_to_read__is_named(block: Json) -> None:
    request = carried(sent(block, TEXT))

    assert request.fields["messages"][1]["content"] == "Shall I?"
    assert [block["type"] in warning for warning in request.warnings] == [True]


def test_blocks__beside_parts__stand_before_them() -> None:
    parts = [{"type": "text", "text": "Shall I?", "cache_control": {"type": "ephemeral"}}]

    message = carried(sent({"type": "compaction", "content": "Nord"}, TEXT, content=parts)).fields["messages"][1]

    assert message["content"][1:] == parts
    assert "Nord" in message["content"][0]["text"]


@pytest.mark.parametrize(
    "blocks",
    [
        [TEXT, {"type": "thinking", "thinking": "…", "signature": "s"}, {"type": "fallback", "to": {"model": "m"}}],
        [{"text": "of Bedrock"}, {"toolUse": {"name": "f"}}],
        [{"type": "reference", "reference_ids": [1]}],
        ["no block"],
    ],
    ids=["expressed", "bedrock", "mistral", "text"],
)
def test_blocks__that_a_message_expresses_or_of_other_vendors__change_nothing(blocks: list[Any]) -> None:
    request = sent(*blocks)

    assert carried(request) is request
