"""Tests streamed answers: chunks of a chat completion as events that Anthropic's SDK puts together."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gateway.surfaces.messages.surface import SURFACE
from tests.gateway.surfaces.messages.clients import (
    REQUEST_ID,
    ask,
    chunk,
    completion,
    read_stream,
    read_whole,
    streamed,
)

CLAUDE = "anthropic-claude-v1"
ROLE = chunk({"role": "assistant", "content": ""})
USAGE = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}

Json = dict[str, Any]


def start_of_call(position: int, arguments: str = "", name: str = "ping") -> bytes:
    function = {"name": name, "arguments": arguments}
    call = {"index": position, "id": f"call_{position}", "type": "function", "function": function}
    return chunk({"tool_calls": [call]})


def arguments(position: int, fragment: str) -> bytes:
    return chunk({"tool_calls": [{"index": position, "function": {"arguments": fragment}}]})


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
