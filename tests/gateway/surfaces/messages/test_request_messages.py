"""Tests the messages of a request to the Messages API as those of a chat completion."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.protocol.wire import decode_request
from gateway.surfaces.messages.surface import SURFACE
from integrations.providers.anthropic import ADAPTER
from tests.gateway.surfaces.messages.clients import ask, chat_messages, chat_request
from tests.integrations.exchanges import credentials

MARK = {"type": "ephemeral"}
PNG = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
PDF = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Zürich"}}
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
HIDDEN = {"type": "redacted_thinking", "data": "ZGF0YQ=="}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
CITED = {
    "type": "text",
    "text": "It rains.",
    "citations": [
        {
            "type": "web_search_result_location",
            "url": "https://w.test",
            "title": "W",
            "encrypted_index": "e1",
            "cited_text": "rain",
        }
    ],
}

Json = dict[str, Any]


def user(*blocks: Json) -> Json:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Json) -> Json:
    return {"role": "assistant", "content": list(blocks)}


def text(words: str, **more: Any) -> Json:
    return {"type": "text", "text": words, **more}


def part_and_reasons(block: Json) -> tuple[Json, tuple[str, ...]]:
    """Returns the block's content part, beside a text, and what the request cannot express."""
    read = SURFACE.read(ask(messages=[user(text("x"), block)]))
    decode_request(read.body)
    part: Json = json.loads(read.body)["messages"][0]["content"][1]
    return part, read.untranslatable


def sent_again(*messages: Json) -> list[Json]:
    """Returns the messages that Anthropic's adapter makes of the chat completion."""
    read = SURFACE.read(ask(model="claude-sonnet-4-5", messages=[*messages]))
    decode_request(read.body)
    built = ADAPTER.build_request(chat_request(read.body), credentials("anthropic"))
    made: list[Json] = json.loads(built.body)["messages"]
    return made


def test_texts__one_unmarked__a_string() -> None:
    assert chat_messages(user(text("Hello"))) == [{"role": "user", "content": "Hello"}]
    assert chat_messages(user(text("Hello", cache_control=MARK))) == [user(text("Hello", cache_control=MARK))]
    assert chat_messages(user(text("A"), text("B"))) == [user(text("A"), text("B"))]


@pytest.mark.parametrize(
    ("source", "url"),
    [
        (PNG, "data:image/png;base64,iVBORw0KGgo="),
        ({"type": "url", "url": "https://i.test/a.png"}, "https://i.test/a.png"),
    ],
)
def test_image__data_or_address__image_url(source: Json, url: str) -> None:
    part, reasons = part_and_reasons({"type": "image", "source": source, "cache_control": MARK})
    assert part == {"type": "image_url", "image_url": {"url": url}, "cache_control": MARK}
    assert reasons == ()


def test_document__data_or_address__document_url() -> None:
    part, _ = part_and_reasons({"type": "document", "source": PDF, "title": "Report"})
    url = "data:application/pdf;base64,JVBERi0="
    assert part == {"type": "document_url", "document_url": {"url": url}, "name": "Report"}
    address = {"type": "url", "url": "https://d.test/a.pdf"}
    part, _ = part_and_reasons({"type": "document", "source": address})
    assert part == {"type": "document_url", "document_url": {"url": "https://d.test/a.pdf"}}


def test_document__text__a_text_below_its_title() -> None:
    source = {"type": "text", "media_type": "text/plain", "data": "All is well."}
    part, reasons = part_and_reasons(
        {"type": "document", "source": source, "title": "Report", "context": "Of May.", "cache_control": MARK}
    )
    assert part == text("Report\n\nOf May.\n\nAll is well.", trust="untrusted", cache_control=MARK)
    assert reasons == ()


@pytest.mark.parametrize(
    ("block", "place"),
    [
        ({"type": "image", "source": {"type": "file", "file_id": "file_1"}}, ".source"),
        ({"type": "document", "source": {"type": "file", "file_id": "file_1"}}, ".source"),
        ({"type": "document", "source": {"type": "content", "content": "x"}}, ".source"),
        ({"type": "document", "source": PDF, "citations": {"enabled": True}}, ".citations"),
        ({"type": "search_result", "source": "s", "title": "t", "content": [text("x")]}, ""),
        ({"type": "container_upload", "file_id": "file_1"}, ""),
        ({"type": "block_of_next_year", "data": 1}, ""),
    ],
)
def test_block__without_counterpart__kept_and_named(block: Json, place: str) -> None:
    part, (reason,) = part_and_reasons(block)
    assert part == block
    assert reason.startswith(f"messages[0].content[1]{place}: ")


def test_results__beside_text__messages_of_their_own_in_front_of_it() -> None:
    first = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "18 degrees"}
    second = {
        "type": "tool_result",
        "tool_use_id": "toolu_2",
        "content": [text("A map:"), {"type": "image", "source": PNG}],
        "is_error": True,
        "cache_control": MARK,
    }
    third = {"type": "tool_result", "tool_use_id": "toolu_3"}
    made = chat_messages(user(first, second, third, text("And now?")))
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    assert made == [
        {"role": "tool", "tool_call_id": "toolu_1", "content": "18 degrees"},
        {
            "role": "tool",
            "tool_call_id": "toolu_2",
            "content": [text("A map:"), image],
            "is_error": True,
            "cache_control": MARK,
        },
        {"role": "tool", "tool_call_id": "toolu_3", "content": ""},
        {"role": "user", "content": "And now?"},
    ]


def test_call__beside_text__tool_calls() -> None:
    (made,) = chat_messages(assistant(text("Let me see."), {**CALL, "cache_control": MARK}))
    assert made["content"] == "Let me see."
    (call,) = made["tool_calls"]
    assert json.loads(call["function"].pop("arguments")) == {"city": "Zürich"}
    function = {"name": "get_weather"}
    assert call == {"id": "toolu_1", "type": "function", "function": function, "cache_control": MARK}


def test_call__alone__no_content() -> None:
    (made,) = chat_messages(assistant(CALL))
    assert made["content"] is None
    assert "provider_specific_fields" not in made


def test_system__in_mid_conversation__in_its_place() -> None:
    instruction = {"role": "system", "content": [text("Now in German.")], "clear_at": "next_user"}
    made = chat_messages(user(text("Hello")), instruction)
    assert made[1] == {"role": "system", "content": "Now in German.", "clear_at": "next_user"}


def test_size__long_text__the_clients_message_is_named() -> None:
    with pytest.raises(Exception, match=r"^messages\[1\]\.content: 1200000 bytes") as caught:
        chat_messages(user(text("x")), user(text("a" * 1_200_000)))
    assert getattr(caught.value, "code", "") == "message_too_large"


def test_size__large_files__no_text() -> None:
    data = "A" * 3_000_000
    cited = {"type": "document", "source": {**PDF, "data": data}, "citations": {"enabled": True}}
    read = SURFACE.read(ask(messages=[user(cited, {"type": "image", "source": {**PNG, "data": data}})]))
    decode_request(read.body)


@pytest.mark.parametrize(
    "blocks",
    [
        [THOUGHT, text("Let me see."), CALL],
        [THOUGHT, HIDDEN, text("Let me see."), CALL],
        [THOUGHT, CALL, {**THOUGHT, "signature": "c2ln2"}, {**CALL, "id": "toolu_2"}],
        [text("A"), THOUGHT, text("B"), CALL],
        [text("A", cache_control=MARK), text("B"), CALL],
        [CALL, text("After the call.")],
        [text("Let me search."), SEARCH, FOUND, CITED, text(" Bye.")],
        [THOUGHT, SEARCH, FOUND, THOUGHT, CITED, CALL],
        [{**CALL, "caller": {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}}],
    ],
)
def test_assistant__any_order_and_blocks__anthropic_gets_the_same_again(blocks: list[Json]) -> None:
    ids = [block["id"] for block in blocks if block["type"] == "tool_use"]
    results = [{"type": "tool_result", "tool_use_id": call_id, "content": "ok"} for call_id in ids]
    next_turn = user(text("Go on."))
    expected = [{"role": "user", "content": "Hello"}, assistant(*blocks)]
    made = sent_again(
        {"role": "user", "content": "Hello"}, assistant(*blocks), user(*results) if results else next_turn
    )
    assert made[:2] == expected


def test_assistant__blocks_of_the_vendor__others_get_the_text() -> None:
    (made,) = chat_messages(assistant(text("Let me search."), SEARCH, FOUND, CITED))
    assert made["content"] == [text("Let me search."), text("It rains.")]
    assert made["provider_specific_fields"]["content"] == [text("Let me search."), SEARCH, FOUND, CITED]
    assert SURFACE.read(ask(messages=[user(text("x")), assistant(SEARCH, FOUND, CITED)])).untranslatable == ()
