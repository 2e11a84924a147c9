"""Tests every recorded exchange of Gemini in both directions: requests against the recorded body and the official SDK's
types, answers against that SDK's reading of the same bytes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from google.genai import Client, types
from pydantic import TypeAdapter

from integrations.providers.base import (
    ChatRequest,
    Credentials,
    StreamTranslator,
    UpstreamRequest,
)
from integrations.providers.errors import FailureKind
from integrations.providers.usage import Usage
from integrations.registry import adapter_for
from tests.fakes.upstream import Connection, Received, UpstreamServer
from tests.integrations.recorded_exchanges import (
    assert_same_however_cut,
    classified_failure,
    client_request,
    exchanges_of,
    replay,
)
from tests.integrations.reverse.google import comparable, has_ids, openai_request
from tests.recordings import Recording, recordings_of

pytestmark = pytest.mark.recordings

EXCHANGES = exchanges_of(recordings_of("google.generateContent", "google.streamGenerateContent"))
FILTERS = ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR", "IMAGE_SAFETY", "LANGUAGE")


def request_of(recording: Recording) -> ChatRequest:
    return client_request(recording, openai_request(recording.request, model=recording.model, stream=recording.stream))


def stream_of(recording: Recording) -> StreamTranslator:
    return adapter_for(recording.provider).stream(request_of(recording))


def credentials_of(recording: Recording) -> Credentials:
    if recording.provider == "google":
        return Credentials(1, "google", "", "AIzaSyRecorded")
    return Credentials(1, "google_vertex", "", "ya29.recorded", {"project": "PROJECT", "location": "LOCATION"})


def built(recording: Recording) -> UpstreamRequest:
    adapter, credentials = adapter_for(recording.provider), credentials_of(recording)
    request = request_of(recording)
    needs = adapter.needs(request, credentials)
    assert not needs.media
    return adapter.build_request(request, credentials)


@pytest.mark.parametrize("recording", EXCHANGES.all, ids=str)
def test_request__recorded__as_it_was_sent(recording: Recording) -> None:
    upstream = built(recording)
    sent = json.loads(upstream.body)
    keep_ids = has_ids(recording.request)
    assert comparable(sent, keep_ids=keep_ids) == comparable(recording.request, keep_ids=keep_ids)
    path = recording.path.partition("?")[0]
    assert upstream.url.partition("?")[0].endswith(path.rpartition("/models/")[2])
    assert upstream.url.endswith("?alt=sse") is recording.stream
    assert [warning for warning in upstream.warnings if "detail" not in warning] == []


@pytest.mark.parametrize("recording", EXCHANGES.all, ids=str)
def test_request__recorded__of_the_sdks_types(recording: Recording) -> None:
    """The request is validated by the SDK's models, which refuse unknown fields."""
    body = json.loads(built(recording).body)
    accept(list[types.Content], body.pop("contents"))
    accept(types.Content, body.pop("systemInstruction", {}))
    accept(list[types.Tool], body.pop("tools", []))
    accept(types.ToolConfig, body.pop("toolConfig", {}))
    accept(types.GenerationConfig, body.pop("generationConfig", {}))
    accept(types.GenerateContentConfig, body)


def accept(kind: Any, value: Any) -> None:
    TypeAdapter(kind).validate_json(json.dumps(value), strict=None)


@pytest.fixture(scope="module")
def replaying() -> Iterator[Client]:
    """Yields the official SDK on a server that answers every request for `model` with the recording of that name."""

    async def answer(received: Received, connection: Connection) -> None:
        recording = next(item for item in EXCHANGES.all if received.path.partition(":")[0].endswith(f"/{item.name}"))
        if recording.stream:
            await connection.start_stream()
            await connection.send_chunk(as_sse(recording))
            await connection.end_stream()
        else:
            await connection.send_whole(200, recording.body, {"content-type": "application/json; charset=UTF-8"})

    with (
        UpstreamServer(answer) as server,
        Client(api_key="k", http_options=types.HttpOptions(base_url=server.url)) as sdk,
    ):
        yield sdk


def as_sse(recording: Recording) -> bytes:
    """Returns the recording as server-sent events with enumerations by name, the only form that the SDK reads."""
    if not recording.body.lstrip().startswith(b"["):
        return recording.body
    text = recording.body.decode().replace('"finishReason": 1', '"finishReason": "STOP"')
    text = text.replace('"modality": 1', '"modality": "TEXT"').replace('"trafficType": 1', '"trafficType": "ON_DEMAND"')
    return "".join(f"data: {json.dumps(item)}\r\n\r\n" for item in json.loads(text)).encode()


def read_by_sdk(responses: Iterable[types.GenerateContentResponse]) -> dict[str, Any]:
    """Returns text, thoughts, calls, reason and usage of the first candidate from the SDK's types."""
    found: dict[str, Any] = {"text": "", "reasoning": "", "calls": [], "signatures": [], "finish": None}
    usage: types.GenerateContentResponseUsageMetadata | None = None
    for response in responses:
        if response.usage_metadata and response.usage_metadata.prompt_token_count is not None:
            usage = response.usage_metadata
        for candidate in response.candidates or ():
            for part in (candidate.content and candidate.content.parts) or ():
                found["reasoning" if part.thought else "text"] += part.text or ""
                if part.function_call:
                    found["calls"].append((part.function_call.name, part.function_call.args or {}))
                if part.thought_signature:
                    found["signatures"].append(part.thought_signature)
            if candidate.finish_reason:
                found["finish"] = candidate.finish_reason.value
            if candidate.grounding_metadata:
                # From Gemini 3 each query is charged.
                found["searches"] = len(candidate.grounding_metadata.web_search_queries or ())
    assert usage is not None
    thoughts = usage.thoughts_token_count or 0
    found["usage"] = Usage(
        prompt_tokens=(usage.prompt_token_count or 0) + (usage.tool_use_prompt_token_count or 0),
        completion_tokens=(usage.candidates_token_count or 0) + thoughts,
        cache_read_tokens=usage.cached_content_token_count or 0,
        reasoning_tokens=thoughts,
        audio_prompt_tokens=tokens_of(usage.prompt_tokens_details, "AUDIO"),
        image_prompt_tokens=tokens_of(usage.prompt_tokens_details, "IMAGE"),
        image_completion_tokens=tokens_of(usage.candidates_tokens_details, "IMAGE"),
        searches=found.pop("searches", 0),
    )
    return found


def tokens_of(details: Iterable[types.ModalityTokenCount] | None, modality: str) -> int:
    return sum(detail.token_count or 0 for detail in details or () if detail.modality == modality)


def expected_finish(read: dict[str, Any]) -> str:
    if read["finish"] in FILTERS:
        return "content_filter"
    if read["finish"] == "MAX_TOKENS":
        return "length"
    return "tool_calls" if read["calls"] else "stop"


def calls_of(calls: Iterable[Any]) -> list[tuple[str, Any]]:
    return [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls]


@pytest.mark.parametrize("recording", EXCHANGES.whole, ids=str)
def test_answer__recorded__as_the_sdk_reads_it(recording: Recording, replaying: Client) -> None:
    answer = adapter_for(recording.provider).parse_response(request_of(recording), recording.body)
    response = replaying.models.generate_content(model=recording.name, contents="x")
    expected = read_by_sdk([response])
    completion = json.loads(answer.body)
    message = completion["choices"][0]["message"]
    assert (message["content"] or "") == expected["text"]
    assert message.get("reasoning_content", "") == expected["reasoning"]
    assert calls_of(message.get("tool_calls", ())) == expected["calls"]
    assert len(message.get("reasoning_details", ())) == len(expected["signatures"])
    assert answer.finish_reason == completion["choices"][0]["finish_reason"] == expected_finish(expected)
    assert answer.usage == expected["usage"]
    assert completion["usage"]["total_tokens"] == response.usage_metadata.total_token_count  # type: ignore[union-attr]  # every recording has one
    assert (answer.model, completion["id"]) == (response.model_version, response.response_id)
    assert_sources(message, response)


def assert_sources(message: dict[str, Any], response: types.GenerateContentResponse) -> None:
    metadata = response.candidates[0].grounding_metadata if response.candidates else None
    supports = (metadata and metadata.grounding_supports) or []
    cited = [entry["url_citation"] for entry in message.get("annotations", ())]
    texts = {message["content"][entry["start_index"] : entry["end_index"]] for entry in cited}
    assert texts == {support.segment.text for support in supports if support.segment}
    chunks = (metadata and metadata.grounding_chunks) or []
    assert {entry["url"] for entry in cited} == {chunk.web.uri for chunk in chunks if chunk.web}


@pytest.mark.parametrize("recording", EXCHANGES.streams, ids=str)
def test_stream__recorded__as_the_sdk_reads_it(recording: Recording, replaying: Client) -> None:
    expected = read_by_sdk(replaying.models.generate_content_stream(model=recording.name, contents="x"))
    replayed = replay(stream_of(recording), [recording.body])
    assert replayed.error is None
    events, stream = replayed.events, replayed.stream
    chunks = [json.loads(event.data) for event in events]
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    assert "".join(delta.get("content") or "" for delta in deltas) == expected["text"]
    assert "".join(event.text for event in events) == expected["text"]
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == expected["reasoning"]
    calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
    assert calls_of(calls) == expected["calls"]
    assert [call["index"] for call in calls] == list(range(len(calls)))
    assert len({call["id"] for call in calls}) == len(calls)
    assert sum(len(delta.get("reasoning_details", ())) for delta in deltas) == len(expected["signatures"])
    assert stream.finish_reason == chunks[-1]["choices"][0]["finish_reason"] == expected_finish(expected)
    assert stream.usage == expected["usage"]
    assert [bool(chunk.get("usage")) for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert not events[0].has_output


@pytest.mark.parametrize("recording", EXCHANGES.streams, ids=str)
def test_stream__recorded_and_cut_anywhere__byte_equal(recording: Recording) -> None:
    assert_same_however_cut(recording, lambda: stream_of(recording))


@pytest.mark.parametrize("recording", EXCHANGES.streams, ids=str)
def test_stream__recorded_and_broken_off__failure_with_what_was_used(recording: Recording) -> None:
    body = recording.body[: recording.body.rindex(b'"finishReason"')]
    error = replay(stream_of(recording), [body]).error
    assert error is not None
    assert error.kind is FailureKind.UNUSABLE


@pytest.mark.parametrize("recording", EXCHANGES.errors, ids=str)
def test_failure__recorded__kind_of_its_status_and_message_kept(recording: Recording) -> None:
    error = classified_failure(adapter_for(recording.provider), recording)
    reported = json.loads(recording.body)["error"]
    assert error.message == reported["message"]
    delays = [detail["retryDelay"] for detail in reported.get("details", ()) if "retryDelay" in detail]
    assert error.retry_after == (float(delays[0].removesuffix("s")) if delays else None)


def test_request__recorded_conversation_continued__signature_on_its_part() -> None:
    """The entries of an answer go back unchanged, through the message that a client keeps."""
    for recording in EXCHANGES.whole:
        response = json.loads(recording.body)
        parts = response["candidates"][0].get("content", {}).get("parts", [])
        adapter, request = adapter_for(recording.provider), request_of(recording)
        answer = json.loads(adapter.parse_response(request, recording.body).body)
        message = answer["choices"][0]["message"]
        results = [
            {"role": "tool", "tool_call_id": call["id"], "content": "1"} for call in message.get("tool_calls", ())
        ]
        fields = {**request.fields, "messages": [*request.fields["messages"], message, *results]}
        again = ChatRequest(recording.model, recording.stream, b"", fields)
        contents = json.loads(adapter.build_request(again, credentials_of(recording)).body)["contents"]
        models = [content for content in contents if content["role"] == "model"]
        sent = models[-1]["parts"] if parts else []
        assert comparable({"contents": [{"parts": sent}]}, keep_ids=False) == comparable(
            {"contents": [{"parts": [part for part in parts if not part.get("thought")]}]}, keep_ids=False
        )
