"""Recorded answers of vendors in their own protocols, relayed: the same bytes however they were cut, and the usage."""

from __future__ import annotations

import json
from zlib import crc32

import pytest

from integrations.providers.base import ChatRequest
from integrations.providers.native import NativeAdapter, native_adapter
from tests.fakes.replay import at_random, body_of, single_bytes
from tests.fakes.scripted import raw
from tests.gateway.conftest import Routed
from tests.gateway.recorded import Recording, exchanges, sse_payloads
from tests.gateway.surfaces.test_native_responses import PATH

pytestmark = pytest.mark.recordings

_OPERATIONS = {
    "openai.responses": "responses",
    "anthropic.messages": "messages",
    "google.generateContent": "generate_content",
    "google.streamGenerateContent": "generate_content",
}
_RECORDED = [
    (recording, adapter)
    for recording in exchanges(*_OPERATIONS)
    if (adapter := native_adapter(recording["provider"], _OPERATIONS[recording["api"]])) is not None
    and recording["response"]["status"] == 200
    and "resp:stream_error" not in recording["features"]
    # The gateway asks Google for events, and not for one JSON array.
    and not (recording["response"]["stream"] and body_of(recording["response"]).startswith(b"["))
]
STREAMS = [pytest.param(*one, id=one[0]["name"]) for one in _RECORDED if one[0]["response"]["stream"]]
RESPONSES = [
    pytest.param(recording, id=recording["name"])
    for recording, _ in _RECORDED
    if recording["api"] == "openai.responses" and recording["response"]["stream"]
]
_REQUEST = ChatRequest("m", True, b"{}", {})


@pytest.mark.parametrize(("recording", "adapter"), STREAMS)
def test_recorded_stream__cut_anywhere__leaves_as_it_came(recording: Recording, adapter: NativeAdapter) -> None:
    body = body_of(recording["response"])
    seed = crc32(recording["name"].encode())
    splits = [at_random(seed), at_random(seed + 1), at_random(seed + 2, max_length=400)]
    for split in [*splits, single_bytes] if len(body) < 20_000 else splits:
        translator = adapter.stream(_REQUEST)
        events = [event for piece in split(body) for event in translator.feed(piece)]
        events += translator.closing()

        relayed = b"".join(event.data + b"\n\n" for event in events)
        assert relayed.rstrip(b"\n") == body.replace(b"\r\n", b"\n").rstrip(b"\n")
        assert translator.usage is not None


@pytest.mark.parametrize("recording", RESPONSES)
def test_recorded_response__through_the_gateway__keeps_its_bytes_text_calls_and_usage(
    routed: Routed, recording: Recording
) -> None:
    provider, body = recording["provider"], body_of(recording["response"])
    gateway, scripts = routed(**{provider: [raw(200, body, {"content-type": "text/event-stream"})]})
    request = {**recording["request"]["body"], "model": f"{provider}/{recording['model']}"}

    answer = gateway.client.post(PATH, content=json.dumps(request).encode(), headers=gateway.headers)

    assert answer.content.rstrip(b"\n") == body.rstrip(b"\n")
    assert json.loads(scripts[provider].received[0].body) == recording["request"]["body"]
    ended = sse_payloads(body.decode())[-1]["response"]
    record = gateway.record(answer)
    assert record.is_native
    assert record.prompt_tokens == ended["usage"]["input_tokens"]
    assert record.completion_tokens == ended["usage"]["output_tokens"]
    assert record.reasoning_tokens == ended["usage"]["output_tokens_details"]["reasoning_tokens"]
    adapter = native_adapter(provider, "responses")
    assert adapter is not None
    message = json.loads(adapter.as_chat(body, stream=True)[len(b"data: ") :])["choices"][0]["delta"]
    texts = [part["text"] for item in ended["output"] if item["type"] == "message" for part in item["content"]]
    assert (message["content"] or "") == "".join(texts)
    called = [item["call_id"] for item in ended["output"] if item["type"] == "function_call"]
    assert [call["id"] for call in message.get("tool_calls", ())] == called
