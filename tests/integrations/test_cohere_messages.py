"""Tests messages in requests to Cohere: roles, reasoning, images, documents and results of tools."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from integrations.providers.base import Media
from integrations.providers.cohere import ADAPTER
from integrations.providers.errors import UnsupportedParameterError
from tests.integrations.cohere_requests import COMMAND_A, REASONING, USER, build, built, data_url
from tests.integrations.exchanges import chat_request, credentials


def messages_of(*messages: dict[str, Any], model: str = COMMAND_A) -> list[dict[str, Any]]:
    converted: list[dict[str, Any]] = built(model, messages=list(messages))["messages"]
    return converted


def called(**more: Any) -> dict[str, Any]:
    call = {"id": "c1", "type": "function", "function": {"name": "ping", "arguments": '{"a":"b"}'}}
    return {"role": "assistant", "content": None, "tool_calls": [call], **more}


def test_messages__every_role__in_its_place_and_form() -> None:
    messages = [
        {"role": "system", "content": "s"},
        {"role": "developer", "content": [{"type": "text", "text": "d", "cache_control": {"type": "ephemeral"}}]},
        USER,
        called(annotations=[], refusal=None),
        {"role": "tool", "tool_call_id": "c1", "content": "r"},
        {"role": "assistant", "content": [{"type": "text", "text": "a"}]},
        {"role": "user", "content": [{"type": "text", "text": "u"}]},
    ]
    body, warnings = build(chat_request(COMMAND_A, messages=messages))
    assert body["messages"] == [
        {"role": "system", "content": "s"},
        {"role": "system", "content": [{"type": "text", "text": "d"}]},
        USER,
        {"role": "assistant", "tool_calls": called()["tool_calls"]},
        {"role": "tool", "tool_call_id": "c1", "content": "r"},
        {"role": "assistant", "content": [{"type": "text", "text": "a"}]},
        {"role": "user", "content": [{"type": "text", "text": "u"}]},
    ]
    assert not warnings


def test_messages__names_and_error_marks__dropped_and_named_once() -> None:
    messages = [
        {**USER, "name": "a"},
        {**USER, "name": "b"},
        {"role": "tool", "tool_call_id": "c1", "content": "r", "is_error": True},
    ]
    _, warnings = build(chat_request(COMMAND_A, messages=messages))
    assert [warning.split(":")[0] for warning in warnings] == ["messages.name", "messages.is_error"]


def test_call__arguments_as_an_object_or_missing__text() -> None:
    calls = [
        {"id": "c1", "function": {"name": "ping", "arguments": {"a": 1}}},
        {"id": "c2", "function": {"name": "ping"}},
    ]
    (message,) = messages_of({"role": "assistant", "tool_calls": calls})
    assert [call["function"]["arguments"] for call in message["tool_calls"]] == ['{"a":1}', "{}"]


@pytest.mark.parametrize(
    ("model", "message", "expected"),
    [
        (
            REASONING,
            {"content": "a", "reasoning_content": "hm"},
            {"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}]},
        ),
        (
            REASONING,
            {"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}]},
            {"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}]},
        ),
        (
            REASONING,
            {"content": "a", "reasoning_details": [{"type": "reasoning.text", "text": "hm"}]},
            {"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}]},
        ),
        (
            REASONING,
            {
                "content": "a",
                "reasoning_content": "hm",
                "reasoning_details": [{"type": "reasoning.text", "text": "hm", "format": "google-gemini-v1"}],
            },
            {"content": "a"},
        ),
        (COMMAND_A, {"content": "a", "reasoning_content": "hm"}, {"content": "a"}),
        (
            COMMAND_A,
            {**called(), "reasoning_content": "I will ping."},
            {"tool_calls": called()["tool_calls"], "tool_plan": "I will ping."},
        ),
        (
            COMMAND_A,
            {**called(), "tool_plan": "I will ping."},
            {"tool_calls": called()["tool_calls"], "tool_plan": "I will ping."},
        ),
        (COMMAND_A, {"content": "a", "citations": ["https://x"]}, {"content": "a"}),
        (
            COMMAND_A,
            {"content": "a", "citations": [{"start": 0, "end": 1, "text": "a", "index": 0}]},
            {"content": "a", "citations": [{"start": 0, "end": 1, "text": "a"}]},
        ),
        (
            COMMAND_A,
            {"content": "a", "provider_specific_fields": {"citations": [{"start": 0, "end": 1, "index": 0}]}},
            {"content": "a", "citations": [{"start": 0, "end": 1}]},
        ),
        (
            REASONING,
            {
                **called(),
                "reasoning_content": "hm\nI will ping.",
                "provider_specific_fields": {"tool_plan": "I will ping."},
            },
            {
                "tool_calls": called()["tool_calls"],
                "tool_plan": "I will ping.",
                "content": [{"type": "thinking", "thinking": "hm"}],
            },
        ),
        (COMMAND_A, {"content": "a", "provider_specific_fields": "x"}, {"content": "a"}),
        (COMMAND_A, {"content": "a", "provider_specific_fields": {"citations": "x"}}, {"content": "a"}),
        (
            COMMAND_A,
            {"content": "a", "provider_specific_fields": {"citations": [{"url": "https://x"}]}},
            {"content": "a"},
        ),
        (COMMAND_A, {"content": "a", "provider_specific_fields": {"tool_plan": "p"}}, {"content": "a"}),
        (
            COMMAND_A,
            {**called(), "provider_specific_fields": {"tool_plan": {"a": 1}}},
            {"tool_calls": called()["tool_calls"]},
        ),
    ],
    ids=str,
)
def test_assistant__history__coheres_own_goes_back(
    model: str, message: dict[str, Any], expected: dict[str, Any]
) -> None:
    sent_message = messages_of(USER, {"role": "assistant", **message}, USER, model=model)[1]
    assert sent_message == {"role": "assistant", **expected}


@pytest.mark.parametrize("content", [None, "", [], [{"type": "text", "text": ""}]])
def test_messages__empty_one__left_out_unless_it_is_the_last(content: Any) -> None:
    """Cohere refuses empty messages: "all elements in history must have a message"."""
    empty = {"role": "assistant", "content": content}
    assert messages_of(USER, empty, {"role": "user", "content": content or ""}, USER) == [USER, USER]
    assert len(messages_of(USER, empty)) == 2


@pytest.mark.parametrize(("detail", "supported"), [("low", True), ("high", True), ("auto", True), ("original", False)])
def test_images__detail__coheres_or_named(detail: str, supported: bool) -> None:
    image = {"type": "image_url", "image_url": {"url": "https://x/a.png", "detail": detail}}
    body, warnings = build(chat_request(COMMAND_A, messages=[{"role": "user", "content": [image, image]}]))
    assert ("detail" in body["messages"][0]["content"][0]["image_url"]) is supported
    assert warnings == (() if supported else ("messages.image_url.detail: dropped, cohere has no counterpart",))


def test_images__in_every_form__an_object() -> None:
    messages = messages_of(
        {
            "role": "user",
            "content": [
                {"type": "image_url", "image_url": {"url": "https://x/a.png", "detail": "low"}, "cache_control": {}},
                {"type": "image_url", "image_url": "https://x/b.png"},
                {"type": "file", "file": {"file_data": "data:image/png;base64,AA=="}},
            ],
        }
    )
    assert messages[0]["content"] == [
        {"type": "image_url", "image_url": {"url": "https://x/a.png", "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "https://x/b.png"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
    ]


def test_documents__of_text__apart_from_the_messages() -> None:
    content = [
        {"type": "text", "text": "Read"},
        {"type": "document_url", "document_url": {"url": data_url("text/plain", "grün".encode())}, "name": "a.txt"},
        {"type": "file", "file": {"filename": "b.json", "file_data": data_url("application/json", b"{}")}},
        {"type": "document_url", "document_url": "data:text/csv,x%2Cy"},
    ]
    body = built(messages=[{"role": "user", "content": content}], documents=["first"])
    assert body["messages"] == [{"role": "user", "content": [{"type": "text", "text": "Read"}]}]
    assert body["documents"] == [
        "first",
        {"id": "a.txt", "data": {"title": "a.txt", "text": "grün"}},
        {"id": "b.json", "data": {"title": "b.json", "text": "{}"}},
        {"data": {"text": "x,y"}},
    ]


def test_documents__nothing_beside_them__the_message_refers_to_them() -> None:
    part = {"type": "document_url", "document_url": {"url": data_url("text/plain", b"x")}}
    assert messages_of({"role": "user", "content": [part]})[0]["content"] == [
        {"type": "text", "text": "See the document."}
    ]


def test_user__no_parts__no_text() -> None:
    assert messages_of({"role": "user", "content": []})[0]["content"] == ""


def test_documents__by_address__fetched_and_read_as_what_they_are() -> None:
    url = "https://x/a.txt"
    part = {"type": "document_url", "document_url": {"url": url}}
    image = {"type": "image_url", "image_url": {"url": "https://x/b.png"}}
    request = chat_request(COMMAND_A, messages=[{"role": "user", "content": [part, image, part]}])
    assert ADAPTER.needs(request, credentials("cohere")).media == (url,)
    body, _ = build(replace(request, media={url: Media("text/plain", b"hi")}))
    assert [document["data"]["text"] for document in body["documents"]] == ["hi", "hi"]
    with pytest.raises(UnsupportedParameterError, match="application/pdf"):
        build(replace(request, media={url: Media("application/pdf", b"%PDF")}))


def test_needs__no_document__body_not_even_looked_into() -> None:
    assert ADAPTER.needs(replace(chat_request(COMMAND_A), fields={}), credentials("cohere")).media == ()


def test_tool_result__parts__text_and_documents_stay_images_follow() -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://x/a.png"}}
    native = {"type": "document", "document": {"id": "d", "data": {"text": "t"}}}
    text = {"type": "document_url", "document_url": {"url": data_url("text/plain", b"x")}}
    messages = messages_of(
        USER,
        called(),
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "r"}, native, text, picture]},
        {"role": "tool", "tool_call_id": "c2", "content": [picture]},
        {"role": "assistant", "content": "a"},
    )
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "tool", "user", "assistant"]
    assert messages[2]["content"] == [
        {"type": "text", "text": "r"},
        native,
        {"type": "document", "document": {"data": {"text": "x"}}},
    ]
    assert messages[3]["content"] == [{"type": "text", "text": "The result is the image that follows."}]
    assert messages[4] == {"role": "user", "content": [picture, picture]}


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
