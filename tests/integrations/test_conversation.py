from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from integrations.providers.common.conversation import (
    Attachment,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    data_url,
    read_conversation,
)
from integrations.providers.errors import UnsupportedParameterError
from tests.tables.cases import tabled

PNG = "data:image/png;base64,iVBORw0KGgo="
CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}


def read(*messages: dict[str, Any]) -> Any:
    return read_conversation({"messages": list(messages)})


def test_conversation__system_and_developer_wherever_they_stand__are_system_in_order() -> None:
    conversation = read(
        {"role": "system", "content": "one"},
        {"role": "user", "content": "hi"},
        {"role": "developer", "content": [{"type": "text", "text": "two"}]},
    )

    assert [part.text for part in conversation.system] == ["one", "two"]
    assert [(turn.role, turn.blocks) for turn in conversation.turns] == [("user", (Text("hi"),))]


def test_conversation__neighbours_of_one_side__are_one_turn_results_among_them() -> None:
    conversation = read(
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": "seen"},
        {"role": "user", "content": "and?"},
    )

    assert [turn.role for turn in conversation.turns] == ["user", "assistant", "user"]
    assert conversation.turns[1].blocks == (ToolCall("call_1", "look", '{"at": 1}'),)
    assert conversation.turns[2].blocks == (ToolResult("call_1", "look", (Text("seen"),)), Text("and?"))


def test_conversation__pictures_in_a_tool_result__are_among_the_attachments() -> None:
    conversation = read(
        {"role": "assistant", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "image_url", "image_url": {"url": PNG}}]},
        {"role": "user", "content": [{"type": "file", "file": {"filename": "a.pdf", "file_data": "data:,x"}}]},
    )

    assert list(conversation.attachments()) == [
        Attachment("image", PNG),
        Attachment("document", "data:,x", name="a.pdf"),
    ]


@tabled
def test_conversation__reasoning_of_the_history__in_every_field_that_clients_use(
    fields: dict[str, Any], expected: list[Reasoning]
) -> None:
    (turn,) = read({"role": "assistant", "content": "yes", **fields}).turns

    assert list(turn.blocks) == [*expected, Text("yes")]


@tabled
def test_conversation__what_no_other_dialect_has__is_refused_by_its_place(message: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedParameterError, match=r"messages\[0\]"):
        read(message)


@pytest.mark.parametrize("arguments", ["[1]", "nonsense", '"text"', "1"])
def test_arguments__not_a_json_object__are_refused(arguments: str) -> None:
    with pytest.raises(UnsupportedParameterError):
        ToolCall("call_1", "look", arguments).arguments_object()


@given(data=st.binary(max_size=300))
def test_data_url__base64__gives_the_bytes_back(data: bytes) -> None:
    encoded = base64.b64encode(data).decode()

    assert data_url(f"data:image/PNG;base64,{encoded}") == ("image/png", data)


@tabled
def test_data_url__other_forms__as_the_rfc_has_them(url: str, expected: tuple[str, bytes]) -> None:
    assert data_url(url) == expected


@given(data=st.binary(max_size=300))
def test_data_url__base64_as_clients_write_it__gives_the_bytes_back(data: bytes) -> None:
    for_urls = base64.urlsafe_b64encode(data).decode()
    in_lines = base64.encodebytes(data).decode()

    assert data_url(f"data:;base64,{for_urls.rstrip('=')}")[1] == data
    assert data_url(f"data:;base64,{in_lines}")[1] == data


@pytest.mark.parametrize("url", ["data:image/png;base64", "http://a/b", "data:;base64,%%%", "data:;base64,a", ""])
def test_data_url__malformed__is_refused(url: str) -> None:
    with pytest.raises(UnsupportedParameterError):
        data_url(url)
