"""Recorded exchanges of Gemini, whole: as they came where Google gets them, and both ways through the surface and
Google's own adapter. Those of all providers are in `golden/test_recordings.py`."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from gateway.protocol.wire import decode_request
from gateway.surfaces.gemini.surface import GeminiSurface
from integrations.providers.base import ChatRequest
from integrations.providers.native import native_adapter
from integrations.registry import adapter_for
from tests.fakes.scripted import raw
from tests.gateway.conftest import Routed
from tests.gateway.surfaces.gemini.clients import REQUEST_ID, events_of, read_stream, read_whole
from tests.integrations.exchanges import run
from tests.recordings import Recording, recordings_of

pytestmark = pytest.mark.recordings

GEMINI = [
    one
    for one in recordings_of("google.generateContent", "google.streamGenerateContent")
    if native_adapter(one.provider, "generate_content") is not None
]
ANSWERS = [one for one in GEMINI if one.status == 200]


def has_numbers(recording: Recording) -> bool:
    """Returns True where Google was asked for numbers in place of names, which its SDK does not read."""
    return re.search(rb'"finishReason":\s*\d', recording.body) is not None


Json = dict[str, Any]


def surface_of(recording: Recording) -> GeminiSurface:
    return GeminiSurface(recording.model, streams=recording.stream)


@pytest.mark.parametrize("recording", GEMINI, ids=str)
def test_request__recorded__is_a_chat_completion(recording: Recording) -> None:
    body = json.dumps(recording.request, ensure_ascii=False).encode()
    read = surface_of(recording).read(body)

    decode_request(read.body)
    assert surface_of(recording).forwarded(body) is body


@pytest.mark.parametrize("recording", ANSWERS, ids=str)
def test_exchange__recorded__passes_as_it_came(routed: Routed, recording: Recording) -> None:
    provider, is_array = recording.provider, recording.stream and recording.body.startswith(b"[")
    media_type = "text/event-stream" if recording.stream and not is_array else "application/json"
    gateway, scripts = routed(own_account=True, **{provider: [raw(200, recording.body, {"content-type": media_type})]})
    sent = json.dumps(recording.request, ensure_ascii=False).encode()
    method = ("streamGenerateContent" if recording.stream else "generateContent") + ("" if is_array else "?alt=sse")

    answer = gateway.client.post(
        f"/api/gateway/v1beta/models/{provider}/{recording.model}:{method}", content=sent, headers=gateway.headers
    )

    assert answer.status_code == 200, answer.text
    if is_array:
        assert answer.json() == json.loads(recording.body)
    elif recording.stream:
        assert answer.content.rstrip(b"\n") == recording.body.replace(b"\r\n", b"\n").rstrip(b"\n")
    else:
        assert answer.content == recording.body
    assert scripts[provider].received[0].body == sent
    record = gateway.record(answer)
    assert (record.operation, record.is_native) == ("generate_content", True)
    last = answer.json() if is_array or not recording.stream else [*events_of(answer.content)]
    last = last[-1] if isinstance(last, list) else last
    assert record.prompt_tokens >= last["usageMetadata"]["promptTokenCount"]


@pytest.mark.parametrize("recording", [one for one in ANSWERS if not has_numbers(one)], ids=str)
def test_answer__recorded_and_translated__says_what_google_said(recording: Recording) -> None:
    surface, adapter = surface_of(recording), adapter_for(recording.provider)
    asked = {**recording.request, "generationConfig": {"thinkingConfig": {"includeThoughts": True}}}
    read = surface.read(json.dumps(asked).encode())
    request = adapter_request(recording, read.body)
    if recording.stream:
        chunks = [event.data for event in run(adapter.stream(request), [recording.body])]
        stream = surface.stream(read, REQUEST_ID)
        made = read_stream(stream.feed(chunks[:-1]) + stream.close(chunks[-1:]))
        own = read_stream(sse_of(recording.body))
    else:
        made = [read_whole(surface.answer(read, adapter.parse_response(request, recording.body).body, REQUEST_ID))]
        own = [read_whole(recording.body)]
    assert said(made) == said(own)


def sse_of(body: bytes) -> bytes:
    """Returns the stream as events, as which the SDK asks for it."""
    if not body.startswith(b"["):
        return body
    return b"".join(b"data: %b\n\n" % json.dumps(one).encode() for one in json.loads(body))


def adapter_request(recording: Recording, body: bytes) -> ChatRequest:
    return ChatRequest(recording.model, recording.stream, body, json.loads(body))


def said(answers: list[Any]) -> Json:
    """Returns the texts, calls, signatures and counts of an answer."""
    candidates = [one for answer in answers for one in answer.candidates or ()]
    parts = [part for one in candidates if one.content for part in one.content.parts or ()]
    calls = [part.function_call for part in parts if part.function_call]
    usage = answers[-1].usage_metadata
    return {
        "text": "".join(part.text or "" for part in parts if not part.thought),
        "thoughts": "".join(part.text or "" for part in parts if part.thought),
        "calls": [(call.name, call.args) for call in calls],
        "signatures": sorted(
            part.thought_signature
            for part in parts
            if part.thought_signature and not part.thought_signature.startswith(b"prompt-gateway")
        ),
        "own": [kind for part in parts for kind in ("executable_code", "code_execution_result") if getattr(part, kind)],
        "finish": [one.finish_reason for one in candidates if one.finish_reason][-1:],
        "total": usage.total_token_count if usage else None,
        "thought_tokens": (usage.thoughts_token_count or 0) if usage else None,
        "grounding": any(one.grounding_metadata for one in candidates),
    }
