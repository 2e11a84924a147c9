"""Tests `provider_specific_fields`: from an adapter, through a client, and back to an adapter."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from openai.lib.streaming._deltas import accumulate_delta

from integrations.providers.common.completion import Chunks, ParsedChoice, whole
from integrations.providers.common.conversation import Block, Text, ToolResult, read_conversation

CALL = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}


def test_answer__with_fields_of_the_vendor__in_the_message() -> None:
    answer = whole([ParsedChoice(content="Hi", specific={"trace": {"a": 1}})], completion_id="x", model="m", usage=None)
    message = json.loads(answer.body)["choices"][0]["message"]
    assert message["provider_specific_fields"] == {"trace": {"a": 1}}
    plain = whole([ParsedChoice(content="Hi")], completion_id="x", model="m", usage=None)
    assert json.loads(plain.body)["choices"][0]["message"] == {"role": "assistant", "content": "Hi"}


def test_chunks__fields_of_the_vendor__joined_as_the_sdk_does_it() -> None:
    """Lists grow and other fields come once; the lists of two choices are separate."""
    chunks = Chunks(completion_id="x", model="m")
    events = [
        chunks.specific({"content": [{"type": "a", "text": "1"}], "names": ["x"]}),
        chunks.specific({"content": [{"type": "other"}]}, index=1),
        chunks.specific({"content": [{"type": "b"}, {"type": "c"}], "stop_reason": "pause_turn"}),
    ]
    accumulated: dict[int, dict[object, object]] = {0: {}, 1: {}}
    for event in events:
        assert event.has_output
        (choice,) = json.loads(event.data)["choices"]
        accumulate_delta(accumulated[choice["index"]], choice["delta"])
    assert accumulated[0] == {
        "provider_specific_fields": {
            "content": [
                {"type": "a", "text": "1", "index": 0},
                {"type": "b", "index": 1},
                {"type": "c", "index": 2},
            ],
            "names": ["x"],
            "stop_reason": "pause_turn",
        }
    }
    assert accumulated[1] == {"provider_specific_fields": {"content": [{"type": "other", "index": 0}]}}


def test_conversation__fields_of_the_vendor__rebuild_the_answers_that_have_them() -> None:
    def rebuild(message: Mapping[str, Any], blocks: list[Block]) -> list[Block]:
        return [Text(message["provider_specific_fields"]["said"]), *reversed(blocks)]

    messages = [
        {"role": "user", "content": "Hi", "provider_specific_fields": {"said": "not asked for"}},
        {"role": "assistant", "content": "a", "tool_calls": [CALL], "provider_specific_fields": {"said": "x"}},
        {"role": "tool", "tool_call_id": "c", "content": "r"},
        {"role": "assistant", "content": "b", "provider_specific_fields": None},
    ]
    user, answer, results, last = read_conversation({"messages": messages}, rebuild=rebuild).turns
    assert user.blocks == (Text("Hi"),)
    assert [getattr(block, "text", "call") for block in answer.blocks] == ["x", "call", "a"]
    assert isinstance(results.blocks[0], ToolResult)
    assert results.blocks[0].name == "look"
    assert last.blocks == (Text("b"),)
