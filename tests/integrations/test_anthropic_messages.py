"""Tests the conversion of a conversation to the messages of the Messages API."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from integrations.providers.anthropic import ADAPTER
from integrations.providers.base import ChatRequest
from integrations.providers.errors import UnsupportedParameterError
from tests.integrations.anthropic_requests import (
    ADAPTIVE,
    BOTH,
    BUDGETS,
    FIRST,
    HIDDEN,
    OLD,
    PING,
    PING_THERE,
    PNG,
    SECOND,
    THOUGHT,
    USER,
    body_of,
    content_of,
    data_url,
    image,
    looped,
    messages_of,
    upstream,
)
from tests.integrations.exchanges import chat_request, credentials


def test_system__one_plain_text__a_string() -> None:
    body = body_of(messages=[{"role": "system", "content": "Be brief."}, USER])
    assert body["system"] == "Be brief."
    assert body["messages"] == [USER]


def test_system__several_or_marked__blocks_in_order() -> None:
    marker = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    body = body_of(
        messages=[
            {"role": "system", "content": [{"type": "text", "text": "one", **marker}]},
            {"role": "developer", "content": "two"},
            USER,
        ]
    )
    assert body["system"] == [{"type": "text", "text": "one", **marker}, {"type": "text", "text": "two"}]


MARKED = "<system-instruction>\n{}\n</system-instruction>".format
LATER = [
    {"role": "system", "content": "Be brief."},
    USER,
    {"role": "assistant", "content": "Hi"},
    USER,
    {"role": "developer", "content": "From now on X."},
]


@pytest.mark.parametrize(
    "model",
    [
        "claude-opus-4-8",
        "claude-sonnet-5",
        "claude-opus-5-5-20260901",
        "anthropic/claude-haiku-5.5",
        "claude-fable-5",
        "claude-mythos-5-1",
    ],
)
def test_system__in_mid_conversation__in_its_place_where_the_model_takes_it(model: str) -> None:
    marker = {"cache_control": {"type": "ephemeral"}}
    more = [{"role": "assistant", "content": "x"}, {"role": "system", "content": "And Y.", **marker}, USER]
    body = body_of(model, messages=LATER + more)
    assert body["system"] == "Be brief."
    assert body["messages"] == [
        *LATER[1:4],
        {"role": "system", "content": "From now on X."},
        {"role": "assistant", "content": "x"},
        USER,
        {"role": "system", "content": [{"type": "text", "text": "And Y.", **marker}]},
    ]


@pytest.mark.parametrize("model", [OLD, BUDGETS, "claude-opus-4-7", BOTH, "my-deployment"])
def test_system__in_mid_conversation__else_in_the_users_turn_and_what_was_before_unchanged(model: str) -> None:
    before = body_of(model, messages=LATER[:-2])
    body = body_of(model, messages=LATER)
    assert body["system"] == before["system"] == "Be brief."
    assert body["messages"][:2] == before["messages"]
    assert [block["text"] for block in body["messages"][2]["content"]] == ["Hello", MARKED("From now on X.")]


@pytest.mark.parametrize("model", [BUDGETS, ADAPTIVE])
def test_system__between_a_call_and_its_result__behind_the_result(model: str) -> None:
    call, result = looped("c")
    messages = body_of(model, messages=[USER, call, {"role": "system", "content": "X"}, result])["messages"]
    assert messages[2]["content"][0]["type"] == "tool_result"
    if model == ADAPTIVE:
        assert messages[3:] == [{"role": "system", "content": "X"}]
    else:
        assert messages[2]["content"][1] == {"type": "text", "text": MARKED("X")}


def test_system__beside_an_empty_turn__still_before_an_answer_or_last() -> None:
    instruction, silent = {"role": "system", "content": "X"}, {"role": "assistant", "content": None}
    messages = body_of(ADAPTIVE, messages=[USER, instruction, silent, {"role": "user", "content": "More"}])["messages"]
    assert [message["role"] for message in messages] == ["user", "system"]
    assert [block["text"] for block in messages[0]["content"]] == [USER["content"], "More"]
    assert messages[1]["content"] == "X"
    answer, blank = {"role": "assistant", "content": "a"}, {"role": "user", "content": " "}
    messages = body_of(ADAPTIVE, messages=[USER, answer, blank, instruction, answer, USER])["messages"]
    assert messages[2] == {"role": "user", "content": MARKED("X")}


def test_system__alone__sent_as_the_user() -> None:
    request = upstream(messages=[{"role": "system", "content": "Write a haiku."}])
    assert json.loads(request.body)["messages"] == [{"role": "user", "content": "Write a haiku."}]
    assert request.warnings == ("messages: the system message was sent as the user's, anthropic wants one of the user",)


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


def test_cache_marker__on_a_message__on_its_last_block() -> None:
    marker = {"cache_control": {"type": "ephemeral"}}
    parts = [{"type": "text", "text": "a"}, image("https://i.test/a.png")]
    call = {"id": "c", "type": "function", "function": {"name": "ping", "arguments": "{}"}}
    body = body_of(
        messages=[
            {"role": "system", "content": [{"type": "text", "text": "s"}], **marker},
            {"role": "user", "content": parts, **marker},
            {"role": "assistant", "content": None, "tool_calls": [call], **marker},
            {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "r"}], **marker},
            {"role": "user", "content": [{"type": "text", "text": "own", **marker}, parts[0]], **marker},
        ],
        tools=[{"type": "function", "function": {**PING["function"], **marker}}],  # type: ignore[dict-item]  # a mapping
    )
    blocks = [block for message in [{"content": body["system"]}, *body["messages"]] for block in message["content"]]
    assert [block["type"] for block in blocks if "cache_control" in block] == [
        "text",
        "image",
        "tool_use",
        "tool_result",
        "text",
    ]
    assert blocks[-2]["cache_control"]
    assert body["tools"] == [{**PING_THERE, **marker}]


def test_messages__blank_text__left_out() -> None:
    messages = messages_of(
        {"role": "user", "content": [{"type": "text", "text": ""}, {"type": "text", "text": "Hi"}]},
        {"role": "assistant", "content": "\n"},
        {"role": "user", "content": "there"},
    )
    assert messages == [
        {"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "text", "text": "there"}]},
    ]


def test_messages__begun_answer__without_white_space_at_its_end() -> None:
    assert messages_of(USER, {"role": "assistant", "content": "Sure:\n "})[-1]["content"] == "Sure:"
    parts = [{"type": "text", "text": "a "}, {"type": "text", "text": "b "}]
    message = messages_of(USER, {"role": "assistant", "content": parts})[-1]["content"]
    assert [part["text"] for part in message] == ["a ", "b"]


def test_messages__tool_loop__calls_then_results_first() -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "ping", "arguments": '{"n": 1}'}}
    other = {"id": "call_2", "type": "function", "function": {"name": "ping", "arguments": ""}}
    messages = messages_of(
        USER,
        {"role": "assistant", "content": "I call.", "tool_calls": [call, other]},
        {"role": "user", "content": "And?"},
        {"role": "tool", "tool_call_id": "call_1", "content": "pong", "cache_control": {"type": "ephemeral"}},
        {"role": "tool", "tool_call_id": "call_2", "content": [], "is_error": True},
    )
    assert messages[1]["content"] == [
        {"type": "text", "text": "I call."},
        {"type": "tool_use", "id": "call_1", "name": "ping", "input": {"n": 1}},
        {"type": "tool_use", "id": "call_2", "name": "ping", "input": {}},
    ]
    assert messages[2]["content"] == [
        {
            "type": "tool_result",
            "tool_use_id": "call_1",
            "content": "pong",
            "cache_control": {"type": "ephemeral"},
        },
        {"type": "tool_result", "tool_use_id": "call_2", "is_error": True},
        {"type": "text", "text": "And?"},
    ]


def test_messages__tool_result_with_an_image__survives() -> None:
    call = {"id": "functions.shot:0", "type": "function", "function": {"name": "shot", "arguments": "{}"}}
    parts = [{"type": "text", "text": "a photo"}, image(data_url("image/png", PNG))]
    messages = messages_of(
        USER,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "functions.shot:0", "content": parts},
    )
    # The vendor accepts letters, digits, _ and - in ids.
    assert messages[1]["content"][0]["id"] == messages[2]["content"][0]["tool_use_id"] == "functions_shot_0"
    assert [block["type"] for block in messages[2]["content"][0]["content"]] == ["text", "image"]


def test_messages__arguments_that_are_no_object__refused() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "ping", "arguments": "[1]"}}
    with pytest.raises(UnsupportedParameterError, match="JSON object"):
        upstream(messages=[USER, {"role": "assistant", "tool_calls": [call]}])


def test_messages__own_reasoning__back_unmodified_and_in_order() -> None:
    details = [
        {"type": "reasoning.text", "text": "hm", "signature": "s1", "format": "anthropic-claude-v1", "index": 0},
        {"type": "reasoning.encrypted", "data": "d2", "format": "anthropic-claude-v1", "index": 1},
        {"type": "reasoning.text", "text": "", "signature": "s3", "format": "anthropic-claude-v1", "index": 2},
    ]
    messages = messages_of(USER, {"role": "assistant", "content": "Hi", "reasoning_details": details}, USER)
    assert messages[1]["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "s1"},
        {"type": "redacted_thinking", "data": "d2"},
        {"type": "thinking", "thinking": "", "signature": "s3"},
        {"type": "text", "text": "Hi"},
    ]


TEXT_BLOCK, BLANK = {"type": "text", "text": "Now."}, {"type": "text", "text": "\n\n"}


@pytest.mark.parametrize(
    ("content", "dropped"),
    [
        ([THOUGHT, TEXT_BLOCK, FIRST, HIDDEN, SECOND], ()),
        ([THOUGHT, FIRST, HIDDEN, SECOND], ()),
        ([THOUGHT, BLANK, FIRST, HIDDEN, SECOND], (BLANK,)),
        ([TEXT_BLOCK, THOUGHT, HIDDEN, FIRST], ()),
        ([THOUGHT, HIDDEN, TEXT_BLOCK], ()),
    ],
)
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


def test_messages__thinking_and_nothing_behind_it__left_out() -> None:
    """The vendor refuses an answer that was cut off here: "The final block in an assistant message cannot be
    `thinking`"."""
    blocks = [{"type": "thinking", "thinking": "hm", "signature": "s1"}, {"type": "redacted_thinking", "data": "d"}]
    thought = {"role": "assistant", "content": "", "thinking_blocks": blocks}
    assert [message["role"] for message in messages_of(USER, thought, USER)] == ["user"]
    details = [
        {"type": "reasoning.text", "text": "hm", "signature": "s", "format": "anthropic-claude-v1", "index": index}
        for index in (0, 2)
    ]
    messages = messages_of(USER, {"role": "assistant", "content": "Hi", "reasoning_details": details}, USER)
    assert [block["type"] for block in messages[1]["content"]] == ["thinking", "text"]


def test_messages__ids_of_calls_used_again__distinct_and_answered() -> None:
    """Some vendors number the calls of each answer anew, so that ids repeat."""
    messages = messages_of(
        USER, *looped("call_0"), *looped("call_0"), *looped("call.0"), *looped(""), *looped(""), USER
    )
    called = [message["content"][0]["id"] for message in messages if message["role"] == "assistant"]
    answered = [message["content"][0]["tool_use_id"] for message in messages[2::2]]
    assert called == answered
    assert len(set(called)) == 5
    assert called[:2] == ["call_0", "call_0_2"]


@pytest.mark.parametrize(
    "reasoning",
    [
        {"reasoning_content": "hm"},
        {"reasoning_details": [{"type": "reasoning.text", "text": "hm", "format": "anthropic-claude-v1"}]},
        {"reasoning_details": [{"type": "reasoning.encrypted", "data": "x", "format": "google-gemini-v1"}]},
    ],
)
def test_messages__reasoning_unsigned_or_foreign__left_out_in_silence(reasoning: dict[str, Any]) -> None:
    request = upstream(messages=[USER, {"role": "assistant", "content": "Hi", **reasoning}, USER])
    assert json.loads(request.body)["messages"][1] == {"role": "assistant", "content": "Hi"}
    assert not request.warnings


def test_messages__thinking_blocks_of_the_vendor__taken() -> None:
    blocks = [{"type": "thinking", "thinking": "hm", "signature": "s1"}, {"type": "redacted_thinking", "data": "d"}]
    messages = messages_of(USER, {"role": "assistant", "content": "Hi", "thinking_blocks": blocks}, USER)
    assert messages[1]["content"][:2] == blocks


@pytest.mark.parametrize(
    "part",
    [
        {"type": "container_upload", "file_id": "file_1"},
        {"type": "search_result", "source": "https://s.test", "title": "t", "content": []},
        {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []},
        {"type": "document", "source": {"type": "url", "url": "https://d.test"}, "citations": {"enabled": True}},
    ],
)
def test_messages__native_block__in_its_place(part: dict[str, Any]) -> None:
    text = {"type": "text", "text": "a"}
    assert content_of(text, part, text) == [text, part, text]


def test_messages__uploaded_file__by_its_id_unless_another_vendor_holds_it() -> None:
    part = {"type": "file", "file": {"file_id": "file_1", "filename": "a.pdf"}, "cache_control": {"type": "ephemeral"}}
    assert content_of(part) == [
        {
            "type": "document",
            "source": {"type": "file", "file_id": "file_1"},
            "title": "a.pdf",
            "cache_control": {"type": "ephemeral"},
        }
    ]
    direct = chat_request(BUDGETS, messages=[{"role": "user", "content": [part]}])
    fallback = ChatRequest(direct.model, False, direct.body, direct.fields, crosses_vendor=True)
    with pytest.raises(UnsupportedParameterError, match="file_data"):
        ADAPTER.build_request(fallback, credentials("anthropic"))


def test_messages__text_with_its_citations__as_it_is() -> None:
    cited = {"type": "text", "text": "It rains.", "citations": [{"type": "char_location", "document_index": 0}]}
    plain = {"type": "text", "text": "So.", "citations": None}
    messages = messages_of(USER, {"role": "assistant", "content": [cited, plain]}, USER)
    assert messages[1]["content"] == [cited, {"type": "text", "text": "So."}]


def test_system__settings_of_the_beta__named() -> None:
    later = {"role": "system", "content": "X", "clear_at": "next_user_message"}
    assert upstream(ADAPTIVE, messages=[USER, later]).warnings == (
        "messages.clear_at: dropped, instructions are sent without it",
    )
