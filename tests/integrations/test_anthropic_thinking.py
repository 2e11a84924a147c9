"""Tests thinking and effort in requests to the Messages API, by generation of the model."""

from __future__ import annotations

import json
from typing import Any

from integrations.providers.anthropic.models import rules_of
from tests.integrations.anthropic_requests import (
    ADAPTIVE,
    PING,
    USER,
    body_of,
    upstream,
)
from tests.tables.cases import tabled


def test_thinking__in_the_middle_of_a_loop_that_began_without__left_out() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "ping", "arguments": "{}"}}
    history: list[dict[str, Any]] = [
        USER,
        {"role": "assistant", "content": None, "tool_calls": [call], "reasoning_content": "of another vendor"},
        {"role": "tool", "tool_call_id": "c", "content": "pong"},
    ]
    request = upstream(messages=history, tools=[PING], reasoning_effort="high")
    assert "thinking" not in json.loads(request.body)
    assert request.warnings == ("reasoning_effort: dropped, the tool call that is being answered came without it",)
    signed = {"type": "reasoning.text", "text": "hm", "signature": "s", "format": "anthropic-claude-v1", "index": 0}
    history[1]["reasoning_details"] = [signed]
    assert "thinking" in body_of(messages=history, tools=[PING], reasoning_effort="high")
    # A model that decides itself about thinking needs no entry.
    del history[1]["reasoning_details"]
    assert "thinking" in body_of(ADAPTIVE, messages=history, tools=[PING], reasoning_effort="high")


@tabled
def test_rules__by_name__of_the_generation(model: str, thinking: str, sampling: bool, schema: bool) -> None:
    rules = rules_of(model)
    assert (rules.thinking, rules.sampling, rules.schema) == (thinking, sampling, schema)
