"""Tests recorded exchanges of all providers through their adapters and this surface, against what was recorded."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from anthropic.types import Message

from gateway.protocol.wire import decode_request
from gateway.surfaces.messages.surface import SURFACE
from integrations.providers.anthropic import ADAPTER
from integrations.providers.base import ChatRequest
from integrations.registry import adapter_for
from tests.fakes.replay import body_of
from tests.gateway.native import NATIVE, canonical, native_answer
from tests.gateway.recorded import RecordedAnswer, exchanges, expected
from tests.gateway.reversed import openai_request
from tests.gateway.surfaces.messages.clients import (
    REQUEST_ID,
    ask,
    chat_request,
    read_stream,
    read_whole,
    streamed,
)
from tests.integrations.exchanges import credentials, run
from tests.integrations.test_anthropic_recordings import plain, read_by_the_sdk
from tests.recordings import OPENAI_DIALECT, Recording, recordings_of

pytestmark = pytest.mark.recordings

ANTHROPIC = recordings_of("anthropic.messages")
ANSWERS = [one for one in ANTHROPIC if one.status == 200 and b"event: error" not in one.body]
STOP_REASONS = {
    "stop": {"end_turn", "stop_sequence", "pause_turn"},
    "tool_calls": {"tool_use"},
    "length": {"max_tokens"},
    "content_filter": {"refusal"},
}

Json = dict[str, Any]


def content_of(message: Message) -> list[Json]:
    """Returns the blocks without `caller`, which calls of the model itself do not need."""
    blocks: list[Json] = message.to_dict()["content"]  # type: ignore[assignment]
    direct = {"type": "direct"}
    return [{name: value for name, value in block.items() if (name, value) != ("caller", direct)} for block in blocks]


@pytest.mark.parametrize("recording", ANTHROPIC, ids=str)
def test_request__recorded__the_adapter_makes_the_same_body_again(recording: Recording) -> None:
    read = SURFACE.read(json.dumps(recording.request, ensure_ascii=False).encode())
    decode_request(read.body)
    made = ADAPTER.build_request(chat_request(read.body), credentials("anthropic"))
    assert plain(json.loads(made.body)) == plain(recording.request)
    assert not made.warnings


@pytest.mark.parametrize("recording", ANSWERS, ids=str)
def test_answer__recorded__the_sdk_reads_the_vendors_message(recording: Recording) -> None:
    read = SURFACE.read(json.dumps(recording.request).encode())
    request = chat_request(read.body)
    if recording.stream:
        chunks = [event.data for event in run(ADAPTER.stream(request), [recording.body])]
        made = read_stream(streamed(chunks))
    else:
        made = read_whole(SURFACE.answer(read, ADAPTER.parse_response(request, recording.body).body, REQUEST_ID))
    vendors = read_by_the_sdk(recording)
    assert content_of(made) == content_of(vendors)
    assert (made.id, made.model, made.role) == (vendors.id, vendors.model, vendors.role)
    assert (made.stop_reason, made.stop_sequence) == (vendors.stop_reason, vendors.stop_sequence)
    assert made.usage.input_tokens == vendors.usage.input_tokens
    assert made.usage.output_tokens == vendors.usage.output_tokens
    assert made.usage.cache_read_input_tokens == (vendors.usage.cache_read_input_tokens or 0)
    assert made.usage.cache_creation_input_tokens == (vendors.usage.cache_creation_input_tokens or 0)


def known_answer(exchange: Json) -> RecordedAnswer:
    return expected(exchange) if exchange["api"] == OPENAI_DIALECT else native_answer(exchange)


def is_of_this_protocol(exchange: Json) -> bool:
    """Returns False for a stream that ends with an error, which `test_errors.py` has, and for a request with functions
    of OpenAI's older form, which this surface never makes."""
    is_whole = exchange["response"]["status"] == 200 and not known_answer(exchange).error
    return is_whole and "functions" not in (exchange["request"]["body"] or {})


EXCHANGES = [exchange for exchange in exchanges(OPENAI_DIALECT, *NATIVE) if is_of_this_protocol(exchange)]


@pytest.mark.parametrize("exchange", EXCHANGES, ids=lambda exchange: f"{exchange['provider']}/{exchange['name']}")
def test_answer__any_provider__text_calls_usage_and_reason_reach_the_sdk(exchange: Json) -> None:
    known = known_answer(exchange)
    choice, made = known.choices[0], through_the_surface(exchange)
    calls = [(block.name, canonical(block.input)) for block in made.content if block.type == "tool_use"]
    assert calls == [(name, canonical(arguments)) for name, arguments in choice.calls]
    text = "".join(block.text for block in made.content if block.type == "text")
    if made.stop_reason == "refusal" and not choice.text:
        assert text == (made.stop_details.explanation if made.stop_details is not None else "")
    else:
        assert text == choice.text
        assert made.stop_reason in STOP_REASONS[choice.finish]
    if known.usage is not None:
        # The reasoning of xAI's models is in the total alone.
        assert made.usage.output_tokens == known.usage["total_tokens"] - known.usage["prompt_tokens"]


def through_the_surface(exchange: Json) -> Message:
    fields = exchange["request"]["body"] if exchange["api"] == OPENAI_DIALECT else openai_request(exchange)
    fields = {"model": exchange["model"], **(fields or {})}
    is_stream = bool(exchange["response"]["stream"])
    request = ChatRequest(fields["model"], is_stream, json.dumps(fields).encode(), fields)
    adapter, body = adapter_for(exchange["provider"]), body_of(exchange["response"])
    if is_stream:
        return read_stream(streamed(event.data for event in run(adapter.stream(request), [body])))
    parsed = adapter.parse_response(request, body)
    return read_whole(SURFACE.answer(SURFACE.read(ask()), parsed.body, REQUEST_ID))


@pytest.mark.parametrize("recording", [one for one in ANSWERS if one.stream], ids=str)
def test_stream__any_split__the_same_bytes(recording: Recording) -> None:
    request = chat_request(SURFACE.read(json.dumps(recording.request).encode()).body)
    chunks = [event.data for event in run(ADAPTER.stream(request), [recording.body])]
    whole = streamed([], chunks)
    chance = random.Random(recording.name)
    for _ in range(8):
        cuts = sorted(chance.sample(range(len(chunks) + 1), k=min(4, len(chunks))))
        encoder = SURFACE.stream(SURFACE.read(json.dumps(recording.request).encode()), REQUEST_ID)
        parts = [chunks[start:end] for start, end in zip([0, *cuts], [*cuts, len(chunks)], strict=True)]
        frames = [encoder.feed(part) for part in parts[:-1]]
        assert b"".join([*frames, encoder.close(parts[-1])]) == whole
