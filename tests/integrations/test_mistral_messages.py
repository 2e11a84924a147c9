"""Tests messages in requests to Mistral: contents, order, ids of calls, and the reasoning of earlier answers."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from integrations.providers.mistral.messages import CallIds, is_call_id
from integrations.providers.mistral.thinking import FORMAT
from tests.integrations.exchanges import chat_request
from tests.integrations.mistral_requests import SMALL, USER, build, built, called, result


def messages_of(*messages: dict[str, Any], model: str = SMALL, **fields: Any) -> list[dict[str, Any]]:
    converted: list[dict[str, Any]] = built(model, messages=list(messages), **fields)["messages"]
    return converted


@pytest.mark.parametrize("content", [None, "", []])
def test_messages__empty_answer__left_out(content: Any) -> None:
    """Mistral refuses empty answers: "Assistant message must have either content or tool_calls, but not none."."""
    empty = {"role": "assistant", "content": content}
    assert messages_of(USER, empty, USER) == [USER, USER]
    assert messages_of(USER, called("aB3dE6gH9"), result("aB3dE6gH9"), empty, USER)[-2:] == [
        {"role": "assistant", "content": "OK"},
        USER,
    ]


def test_messages__echoes_and_markers__left_out_in_silence() -> None:
    request = chat_request(
        SMALL,
        messages=[
            {"role": "developer", "content": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}]},
            {"role": "user", "content": "q", "cache_control": {"type": "ephemeral"}},
            {"role": "assistant", "content": "a", "refusal": None, "annotations": [], "audio": None, "tool_calls": []},
            USER,
        ],
    )
    body, warnings = build(request)
    assert body["messages"] == [
        {"role": "system", "content": [{"type": "text", "text": "s"}]},
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "a"},
        USER,
    ]
    assert not warnings


def test_messages__names_and_error_marks__dropped_and_named_once() -> None:
    messages = [{**USER, "name": "a"}, {**USER, "name": "b"}, called("call_1"), {**result("call_1"), "is_error": True}]
    _, warnings = build(chat_request(SMALL, messages=messages))
    assert [warning.split(":")[0] for warning in warnings] == ["messages.name", "messages.is_error"]


def test_parts__every_kind__mistrals() -> None:
    parts = [
        {"type": "refusal", "refusal": "no"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "low"}, "cache_control": {}},
        {"type": "image_url", "image_url": "https://x/a.png"},
        {"type": "document_url", "document_url": {"url": "https://x/a.pdf"}, "name": "a.pdf"},
        {"type": "document_url", "document_url": "https://x/b.pdf", "document_name": "b"},
        {"type": "file", "file": {"filename": "c.pdf", "file_data": "data:application/pdf;base64,AA=="}},
        {"type": "file", "file": {"file_data": "data:image/png;base64,AA=="}},
        {"type": "file", "file": {"file_id": "f1"}},
        {"type": "file", "file_id": "f2"},
        {"type": "input_audio", "input_audio": {"data": "AA==", "format": "mp3"}},
        {"type": "input_audio", "input_audio": "https://x/a.mp3"},
    ]
    assert messages_of({"role": "user", "content": parts})[0]["content"] == [
        {"type": "text", "text": "no"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "low"}},
        {"type": "image_url", "image_url": "https://x/a.png"},
        {"type": "document_url", "document_url": "https://x/a.pdf", "document_name": "a.pdf"},
        {"type": "document_url", "document_url": "https://x/b.pdf", "document_name": "b"},
        {"type": "document_url", "document_url": "data:application/pdf;base64,AA==", "document_name": "c.pdf"},
        {"type": "image_url", "image_url": "data:image/png;base64,AA=="},
        {"type": "file", "file_id": "f1"},
        {"type": "file", "file_id": "f2"},
        {"type": "input_audio", "input_audio": "AA=="},
        {"type": "input_audio", "input_audio": "https://x/a.mp3"},
    ]


def test_order__user_after_tool__an_answer_comes_between() -> None:
    messages = messages_of(USER, called("aB3dE6gH9"), result("aB3dE6gH9"), USER)
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant", "user"]


@pytest.mark.parametrize(
    ("roles", "expected"),
    [
        ("system user", "system user"),
        ("user system user", "user system user"),
        ("user assistant system user", "user assistant user user"),
        ("user assistant developer", "user assistant user"),
        ("system", "user"),
        ("system system", "system user"),
    ],
)
def test_order__instructions_behind_an_answer__the_users(roles: str, expected: str) -> None:
    messages = messages_of(*({"role": role, "content": "x"} for role in roles.split()))
    assert " ".join(message["role"] for message in messages) == expected
    assert messages[0]["content"] == "x"
    marked = "<system-instruction>\nx\n</system-instruction>"
    contents = [marked if role in ("system", "developer") and "assistant" in roles else "x" for role in roles.split()]
    assert [message["content"] for message in messages] == contents


def test_order__instructions_behind_a_result__the_users_behind_an_answer() -> None:
    messages = messages_of(USER, called("aB3dE6gH9"), result("aB3dE6gH9"), {"role": "system", "content": "s"}, USER)
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant", "user", "user"]


def test_order__an_answer_last__gone_on_with() -> None:
    assert messages_of(USER, {"role": "assistant", "content": "Well"})[1]["prefix"] is True
    assert "prefix" not in messages_of(USER, called("aB3dE6gH9"))[1]


def test_call_ids__foreign__the_same_in_call_and_result_and_next_turn() -> None:
    first = messages_of(USER, called("call_abc"), result("call_abc"))
    call_id = first[1]["tool_calls"][0]["id"]
    assert is_call_id(call_id)
    assert first[2]["tool_call_id"] == call_id
    later = messages_of(USER, called("call_abc"), result("call_abc"), {"role": "assistant", "content": "x"}, USER)
    assert later[1]["tool_calls"][0]["id"] == call_id


def test_call_ids__none_at_all__still_good_ones() -> None:
    calls = [{"type": "function", "function": {"name": "ping", "arguments": {"a": 1}}} for _ in range(2)]
    (_, message) = messages_of(USER, {"role": "assistant", "tool_calls": calls})
    ids = [call["id"] for call in message["tool_calls"]]
    assert len(set(ids)) == 2
    assert all(map(is_call_id, ids))


@given(st.lists(st.text(max_size=30), max_size=30))
def test_call_ids__any__well_formed_stable_and_distinct(given_ids: list[str]) -> None:
    ids = CallIds(iter(given_ids))
    new_ids = {call_id: ids.of(call_id) for call_id in given_ids}
    assert all(re.fullmatch("[a-zA-Z0-9]{9}", one) for one in new_ids.values())
    assert len(set(new_ids.values())) == len(new_ids)
    assert {call_id: ids.of(call_id) for call_id in given_ids} == new_ids
    assert all(new_ids[call_id] == call_id for call_id in new_ids if is_call_id(call_id))


def test_call_ids__made_one_is_taken__another_is_made() -> None:
    call_id = CallIds(iter(())).of("call_1")
    assert CallIds(iter((call_id,))).of("call_1") not in ("call_1", call_id)


THOUGHT = {"type": "reasoning.text", "text": "hm", "format": FORMAT, "index": 0}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            {"content": "a", "reasoning_content": "hm", "reasoning_details": [THOUGHT]},
            [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "a"}],
        ),
        (
            {"content": [{"type": "text", "text": "a"}], "reasoning_details": [{**THOUGHT, "signature": "s"}]},
            [
                {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}], "signature": "s"},
                {"type": "text", "text": "a"},
            ],
        ),
        (
            {"content": "a", "reasoning_details": [{**THOUGHT, "text": "h"}, {**THOUGHT, "text": "m"}]},
            [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "a"}],
        ),
        ({"content": "a", "reasoning_details": [{**THOUGHT, "format": "anthropic-claude-v1"}]}, "a"),
        ({"content": "a", "thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "s"}]}, "a"),
        ({"content": "a", "reasoning_content": "hm"}, "a"),
    ],
    ids=str,
)
def test_thinking__of_earlier_answers__mistrals_own_goes_back(message: dict[str, Any], expected: Any) -> None:
    assert messages_of(USER, {"role": "assistant", **message}, USER)[1] == {"role": "assistant", "content": expected}


@pytest.mark.parametrize(
    ("model", "fields", "as_parts"),
    [
        ("magistral-medium-latest", {}, True),
        (SMALL, {"reasoning_effort": "high"}, True),
        (SMALL, {"reasoning_effort": "none"}, False),
        ("mistral-large-latest", {}, False),
    ],
)
def test_thinking__of_no_known_origin__only_where_the_model_reasons(
    model: str, fields: dict[str, Any], as_parts: bool
) -> None:
    history = {"role": "assistant", "content": "a", "reasoning_content": "hm"}
    content = messages_of(USER, history, USER, model=model, **fields)[1]["content"]
    assert isinstance(content, list) is as_parts


TEXT: dict[str, Any] = {"type": "text", "text": "It rains"}
REFERENCE: dict[str, Any] = {"type": "reference", "reference_ids": [1, 4]}


def echoed(parts: Any, content: Any = "It rains.") -> Any:
    history = {"role": "assistant", "content": content, "provider_specific_fields": {"content": parts}}
    message = messages_of(USER, history, USER)[1]
    assert message.keys() == {"role", "content"}
    return message["content"]


def test_references__of_an_earlier_answer__back_in_their_places() -> None:
    parts = [TEXT, REFERENCE, {"type": "text", "text": "."}]
    assert echoed(parts) == parts


@pytest.mark.parametrize(
    "parts",
    [
        [TEXT, REFERENCE],
        [{"type": "text", "text": "It rains."}, {"type": "server_tool_use", "id": "x"}],
        [{"type": "text", "text": "It rains.", "citations": []}],
        [REFERENCE, {"type": "reference", "reference_ids": {}}],
        [5],
        [],
        "It rains.",
        {"type": "text"},
        None,
    ],
    ids=str,
)
def test_references__tampered_with_or_of_another_vendor__the_message_alone(parts: Any) -> None:
    assert echoed(parts) == "It rains."
