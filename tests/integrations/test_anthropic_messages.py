"""Tests the conversion of a conversation to the messages of the Messages API."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from integrations.providers.anthropic import ADAPTER
from tests.integrations.anthropic_requests import (
    BUDGETS,
    USER,
    body_of,
    messages_of,
)
from tests.integrations.exchanges import chat_request
from tests.tables.cases import tabled


@given(
    st.lists(
        st.tuples(st.sampled_from(["system", "user", "assistant"]), st.sampled_from(["", " ", "a", "b ", "c\n"])),
        min_size=1,
        max_size=6,
    )
)
def test_messages__texts__the_same_as_parts_and_as_strings(turns: list[tuple[str, str]]) -> None:
    """Alternating texts are translated by a shorter code path, which must give the same result."""
    strings = [{"role": role, "content": content} for role, content in turns]
    parts = [{"role": role, "content": [{"type": "text", "text": content}]} for role, content in turns]
    assert body_of(messages=strings) == body_of(messages=parts)


@tabled
def test_messages__thinking_between_calls__where_it_was(content: list[Any], dropped: tuple[Any, ...]) -> None:
    """The answer has thinking behind a call, and the client sends the answer back twice."""
    body = json.dumps({"type": "message", "content": content, "stop_reason": "tool_use"}).encode()
    message = json.loads(ADAPTER.parse_response(chat_request(BUDGETS), body).body)["choices"][0]["message"]
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": "pong"} for call in message.get("tool_calls", ())
    ]
    messages = messages_of(USER, message, *results, USER, message, *results, USER)
    expected = [block for block in content if block not in dropped]
    again = [{**block, "id": f"{block['id']}_2"} if "id" in block else block for block in expected]
    assert [messages[1]["content"], messages[3]["content"]] == [expected, again]
    # The vendor treats two answers in a row as one message.
    assert messages_of(USER, message, message, USER)[1]["content"] == expected + again
