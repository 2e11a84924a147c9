"""Tests streamed answers: chunks of a chat completion as events that Anthropic's SDK puts together."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.surfaces.messages.surface import SURFACE
from tests.gateway.surfaces.messages.clients import (
    LAST,
    REQUEST_ID,
    ask,
    chunk,
    completion,
    events_of,
    read_stream,
    read_whole,
    streamed,
)

CLAUDE = "anthropic-claude-v1"
ROLE = chunk({"role": "assistant", "content": ""})
USAGE = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
CITATION = {
    "type": "char_location",
    "cited_text": "rain",
    "document_index": 0,
    "document_title": None,
    "start_char_index": 0,
    "end_char_index": 4,
    "file_id": None,
}

Json = dict[str, Any]


def start_of_call(position: int, arguments: str = "", name: str = "ping") -> bytes:
    function = {"name": name, "arguments": arguments}
    call = {"index": position, "id": f"call_{position}", "type": "function", "function": function}
    return chunk({"tool_calls": [call]})


def arguments(position: int, fragment: str) -> bytes:
    return chunk({"tool_calls": [{"index": position, "function": {"arguments": fragment}}]})


def own(*blocks: Mapping[str, Any], start: int = 0) -> bytes:
    numbered = [{**block, "index": start + offset} for offset, block in enumerate(blocks)]
    return chunk({"provider_specific_fields": {"content": numbered}})


def content_of(chunks: Sequence[bytes], last: bytes = LAST) -> list[Json]:
    """Returns the blocks that the SDK puts together."""
    content: Any = read_stream(streamed([ROLE, *chunks, last])).to_dict()["content"]
    return [{name: value for name, value in block.items() if value is not None} for block in content]


def test_stream__text__the_vendors_events_in_order() -> None:
    frames = streamed([ROLE, chunk({"content": "Grüße"}), chunk({"content": " 👋"}), LAST])
    start, block, ping, *rest = events_of(frames)
    assert start["message"]["id"] == "msg_1"
    assert start["message"]["usage"]["input_tokens"] == 0
    assert block == {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    assert ping == {"type": "ping"}
    delta = {"type": "content_block_delta", "index": 0}
    assert rest == [
        {**delta, "delta": {"type": "text_delta", "text": "Grüße"}},
        {**delta, "delta": {"type": "text_delta", "text": " 👋"}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None, "stop_details": None},
            "usage": {
                "input_tokens": 9,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
                "output_tokens": 4,
            },
        },
        {"type": "message_stop"},
    ]


def test_stream__calls__their_input_in_fragments() -> None:
    chunks = [
        chunk({"content": "See."}),
        start_of_call(0),
        arguments(0, '{"city": '),
        arguments(0, '"Zürich"}'),
        start_of_call(1, "{}"),
    ]
    assert content_of(chunks) == [
        {"type": "text", "text": "See."},
        {"type": "tool_use", "id": "call_0", "name": "ping", "input": {"city": "Zürich"}},
        {"type": "tool_use", "id": "call_1", "name": "ping", "input": {}},
    ]


def test_stream__calls_that_alternate__each_fragment_to_its_own() -> None:
    chunks = [start_of_call(0, '{"a": '), start_of_call(1, '{"b": '), arguments(0, "1}"), arguments(1, "2}")]
    assert [block["input"] for block in content_of(chunks)] == [{"a": 1}, {"b": 2}]


def test_stream__claudes_thinking__signed_when_the_block_ends() -> None:
    first = {"type": "reasoning.text", "text": "Hm. So.", "signature": "s0", "format": CLAUDE, "index": 0}
    hidden = {"type": "reasoning.encrypted", "data": "d1", "format": CLAUDE, "index": 1}
    silent = {"type": "reasoning.text", "text": "", "signature": "s2", "format": CLAUDE, "index": 3}
    chunks = [
        chunk({"reasoning_content": "Hm."}),
        chunk({"reasoning_content": " So."}),
        chunk({"reasoning_details": [first]}),
        chunk({"reasoning_details": [hidden]}),
        start_of_call(0),
        chunk({"reasoning_details": [silent]}),
        start_of_call(1),
    ]
    assert content_of(chunks) == [
        {"type": "thinking", "thinking": "Hm. So.", "signature": "s0"},
        {"type": "redacted_thinking", "data": "d1"},
        {"type": "tool_use", "id": "call_0", "name": "ping", "input": {}},
        {"type": "thinking", "thinking": "", "signature": "s2"},
        {"type": "tool_use", "id": "call_1", "name": "ping", "input": {}},
    ]


def test_stream__details_in_fragments__one_block() -> None:
    def piece(text: str, **more: Any) -> bytes:
        detail = {"type": "reasoning.text", "text": text, "format": CLAUDE, "index": 0, **more}
        return chunk({"reasoning_content": text, "reasoning_details": [detail]})

    signature = {"type": "reasoning.text", "signature": "s0", "format": CLAUDE, "index": 0}
    chunks = [piece("Hm."), piece(" So."), chunk({"reasoning_details": [signature]}), chunk({"content": "Hi"})]
    thinking = {"type": "thinking", "thinking": "Hm. So.", "signature": "s0"}
    assert content_of(chunks) == [thinking, {"type": "text", "text": "Hi"}]


def test_stream__blocks_of_the_vendor__in_place_with_citations() -> None:
    cited = {"type": "text", "text": "It rains.", "citations": [CITATION]}
    chunks = [
        chunk({"content": "Let me search."}),
        own({"type": "text", "text": "Let me search."}, SEARCH),
        own(FOUND, start=2),
        chunk({"content": "It "}),
        chunk({"content": "rains."}),
        chunk({"annotations": [{"type": "url_citation", "url_citation": {"url": "https://w.test"}, "index": 0}]}),
        own(cited, start=3),
        chunk({"content": " Bye."}),
        own({"type": "text", "text": " Bye."}, start=4),
    ]
    assert content_of(chunks) == [
        {"type": "text", "text": "Let me search."},
        SEARCH,
        FOUND,
        cited,
        {"type": "text", "text": " Bye."},
    ]


def test_stream__own_block_behind_a_call__not_repeated() -> None:
    use = {"type": "tool_use", "id": "call_0", "name": "ping", "input": {}}
    text = {"type": "text", "text": "See."}
    chunks = [chunk({"content": "See."}), start_of_call(0), own(text, use, SEARCH)]
    assert content_of(chunks) == [text, use, SEARCH]


def test_stream__annotations_of_others__citations_of_the_open_text() -> None:
    cited = {"url": "https://w.test", "title": "W", "start_index": 3, "end_index": 8}
    annotation = {"type": "url_citation", "url_citation": cited, "index": 0}
    for behind in ([], [chunk({"content": " Bye."})]):
        (block,) = content_of([chunk({"content": "It rains."}), chunk({"annotations": [annotation]}), *behind])
        assert [(one["url"], one["cited_text"]) for one in block["citations"]] == [("https://w.test", "rains")]


def test_stream__nothing_but_the_end__an_empty_message() -> None:
    read = read_stream(streamed([], [LAST]))
    assert (read.content, read.stop_reason, read.usage.output_tokens) == ([], "end_turn", 4)
    assert [event["type"] for event in events_of(streamed([]))] == [
        "message_start",
        "message_delta",
        "message_stop",
    ]


def test_stream__end_of_the_vendor__its_fields_in_the_last_event() -> None:
    details = {"type": "refusal", "category": "bio", "explanation": "No."}
    specific = {"stop_reason": "pause_turn", "stop_details": details, "context_management": {"applied_edits": []}}
    container = {"id": "container_1", "expires_at": "2026-01-01T00:00:00Z"}
    chunks = [ROLE, chunk({"content": "x", "container": container}), chunk({"provider_specific_fields": specific})]
    end = events_of(streamed([*chunks, LAST]))[-2]
    assert end["delta"] == {
        "stop_reason": "pause_turn",
        "stop_sequence": None,
        "stop_details": details,
        "container": container,
    }
    assert end["context_management"] == {"applied_edits": []}


def test_stream__other_choices__left_out() -> None:
    other = json.loads(chunk({"content": "no"}))
    other["choices"][0]["index"] = 1
    assert content_of([chunk({"content": "yes"}), json.dumps(other).encode()]) == [{"type": "text", "text": "yes"}]


WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=12)


@st.composite
def answers(draw: st.DrawFn) -> tuple[Json, list[bytes]]:
    """Returns the message of a whole answer, and the chunks of the same answer."""
    message: Json = {"role": "assistant", "content": None}
    chunks: list[bytes] = [ROLE]
    if thinking := draw(st.lists(WORDS, max_size=3)):
        text = "".join(thinking)
        chunks += [chunk({"reasoning_content": piece}) for piece in thinking]
        message["reasoning_content"] = text
        if signature := draw(st.sampled_from(["", "c2ln"])):
            vendor = draw(st.sampled_from([CLAUDE, "google-gemini-v1"]))
            detail = {"type": "reasoning.text", "text": text, "signature": signature, "format": vendor, "index": 0}
            chunks.append(chunk({"reasoning_details": [detail]}))
            message["reasoning_details"] = [detail]
    if pieces := draw(st.lists(WORDS, max_size=4)):
        chunks += [chunk({"content": piece}) for piece in pieces]
        message["content"] = "".join(pieces)
    calls = []
    for position, value in enumerate(draw(st.lists(st.dictionaries(WORDS, WORDS, max_size=2), max_size=3))):
        text = json.dumps(value)
        at = draw(st.integers(0, len(text)))
        chunks += [start_of_call(position, text[:at]), arguments(position, text[at:])]
        function = {"name": "ping", "arguments": text}
        calls.append({"id": f"call_{position}", "type": "function", "function": function})
    if calls:
        message["tool_calls"] = calls
    return message, [*chunks, chunk({}, "tool_calls" if calls else "stop", usage=USAGE)]


@given(answers())
def test_stream__any_answer__the_sdk_puts_together_the_whole_one(pair: tuple[Json, list[bytes]]) -> None:
    message, chunks = pair
    finish = "tool_calls" if "tool_calls" in message else "stop"
    whole = read_whole(SURFACE.answer(SURFACE.read(ask()), completion(message, finish, usage=USAGE), REQUEST_ID))
    assert read_stream(streamed(chunks)).to_dict(exclude_none=True) == whole.to_dict(exclude_none=True)


@given(answers(), st.data())
def test_stream__any_split_of_the_chunks__the_same_bytes(pair: tuple[Json, list[bytes]], data: st.DataObject) -> None:
    _, chunks = pair
    cuts = sorted(data.draw(st.lists(st.integers(0, len(chunks)), max_size=5)))
    encoder = SURFACE.stream(SURFACE.read(ask(stream=True)), REQUEST_ID)
    parts = [chunks[start:end] for start, end in zip([0, *cuts], [*cuts, len(chunks)], strict=True)]
    frames = [encoder.feed(part) for part in parts[:-1]]
    assert b"".join([*frames, encoder.close(parts[-1])]) == streamed([], chunks)


@pytest.mark.parametrize("refusal", ["I cannot."])
def test_stream__refusal__the_same_as_whole(refusal: str) -> None:
    whole = read_whole(SURFACE.answer(SURFACE.read(ask()), completion({"refusal": refusal}), REQUEST_ID))
    made = read_stream(streamed([ROLE, chunk({"refusal": "I "}), chunk({"refusal": "cannot."}), LAST]))
    assert made.to_dict(exclude_none=True) == whole.to_dict(exclude_none=True)
