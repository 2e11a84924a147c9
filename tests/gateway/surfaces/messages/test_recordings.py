"""Tests recorded exchanges of Claude both ways through this surface and the adapter of the vendor itself. Those of all
providers are in `golden/test_recordings.py`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from anthropic.types import Message

from gateway.protocol.wire import decode_request
from gateway.surfaces.messages.surface import SURFACE
from integrations.providers.anthropic import ADAPTER
from tests.gateway.surfaces.messages.clients import (
    REQUEST_ID,
    chat_request,
    read_stream,
    read_whole,
    streamed,
)
from tests.integrations.exchanges import credentials, run
from tests.integrations.recordings.readers import anthropic_message
from tests.integrations.recordings.requests import comparable
from tests.recordings import Recording, recordings_of

pytestmark = pytest.mark.recordings

ANTHROPIC = recordings_of("anthropic.messages")
ANSWERS = [one for one in ANTHROPIC if one.status == 200 and b"event: error" not in one.body]

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
    asked, sent = comparable(recording, recording.request), comparable(recording, json.loads(made.body))
    if "web_search_options" in json.loads(read.body):
        # It is no function to choose, and a choice of any tool is the default.
        assert asked.pop("tool_choice", {"type": "auto"}) == {"type": "auto"}
    assert sent == asked
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
    vendors = anthropic_message(recording)
    assert content_of(made) == content_of(vendors)
    assert (made.id, made.model, made.role) == (vendors.id, vendors.model, vendors.role)
    assert (made.stop_reason, made.stop_sequence) == (vendors.stop_reason, vendors.stop_sequence)
    assert made.usage.input_tokens == vendors.usage.input_tokens
    assert made.usage.output_tokens == vendors.usage.output_tokens
    assert made.usage.cache_read_input_tokens == (vendors.usage.cache_read_input_tokens or 0)
    assert made.usage.cache_creation_input_tokens == (vendors.usage.cache_creation_input_tokens or 0)
