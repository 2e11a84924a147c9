"""Tests messages in requests to Cohere: roles, reasoning, images, documents and results of tools."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from integrations.providers.cohere import ADAPTER
from tests.integrations.cohere_requests import COMMAND_A, REASONING, built
from tests.integrations.exchanges import chat_request, credentials


def messages_of(*messages: dict[str, Any], model: str = COMMAND_A) -> list[dict[str, Any]]:
    converted: list[dict[str, Any]] = built(model, messages=list(messages))["messages"]
    return converted


def called(**more: Any) -> dict[str, Any]:
    call = {"id": "c1", "type": "function", "function": {"name": "ping", "arguments": '{"a":"b"}'}}
    return {"role": "assistant", "content": None, "tool_calls": [call], **more}


def test_needs__no_document__body_not_even_looked_into() -> None:
    assert ADAPTER.needs(replace(chat_request(COMMAND_A), fields={}), credentials("cohere")).media == ()


TEXTS = st.text(max_size=20)
PARTS = st.lists(st.builds(lambda text: {"type": "text", "text": text}, TEXTS), min_size=1, max_size=3)
MESSAGES = st.one_of(
    st.builds(
        lambda role, content: {"role": role, "content": content},
        st.sampled_from(["system", "developer", "user"]),
        st.one_of(TEXTS, PARTS),
    ),
    st.builds(
        lambda content, thought: {"role": "assistant", "content": content, "reasoning_content": thought},
        st.one_of(TEXTS, PARTS, st.none()),
        st.one_of(st.none(), TEXTS),
    ),
    st.builds(lambda content: called(content=content), st.one_of(st.none(), TEXTS)),
    st.builds(lambda content: {"role": "tool", "tool_call_id": "c1", "content": content}, st.one_of(TEXTS, PARTS)),
)


def texts_of(messages: list[dict[str, Any]]) -> list[str]:
    found = []
    for message in messages:
        content = message.get("content")
        texts = [part["text"] for part in content if "text" in part] if isinstance(content, list) else [content or ""]
        found += [text] if (text := "".join(texts)) else []
    return found


@given(st.lists(MESSAGES, min_size=1, max_size=6), st.sampled_from([COMMAND_A, REASONING]))
def test_messages__any__accepted_and_every_text_in_order(messages: list[dict[str, Any]], model: str) -> None:
    sent_messages = messages_of(*messages, model=model)
    assert texts_of(sent_messages) == texts_of(messages)
