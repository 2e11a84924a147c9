"""Tests every recorded exchange in both directions: what we send is what was recorded and what the vendor's SDK has
types for, and what we answer is what that SDK reads in the recorded answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from integrations.providers.base import StreamTranslator
from integrations.providers.errors import FailureKind
from integrations.registry import adapter_for
from tests.integrations.recordings.accepted import ACCEPTED
from tests.integrations.recordings.readers import READERS, read
from tests.integrations.recordings.reading import assert_counted, assert_same, of_chunks, of_completion
from tests.integrations.recordings.replays import (
    assert_retry_after,
    assert_same_however_cut,
    classified_failure,
    exchanges_of,
    replay,
)
from tests.integrations.recordings.requests import comparable, credentials_of, path_of, request_of
from tests.recordings import Recording, recordings_of

pytestmark = pytest.mark.recordings

EXCHANGES = exchanges_of(recordings_of(*READERS))
ENDED = [recording for recording in EXCHANGES.streams if "resp:stream_error" not in recording.features]
BROKEN = [recording for recording in EXCHANGES.streams if "resp:stream_error" in recording.features]


def stream_of(recording: Recording) -> StreamTranslator:
    return adapter_for(recording.provider).stream(request_of(recording))


def sent(recording: Recording) -> tuple[str, dict[str, Any], tuple[str, ...]]:
    adapter, request, credentials = adapter_for(recording.provider), request_of(recording), credentials_of(recording)
    assert not adapter.needs(request, credentials).media
    upstream = adapter.build_request(request, credentials)
    return upstream.url, json.loads(upstream.body), upstream.warnings


@pytest.mark.parametrize("recording", EXCHANGES.all, ids=str)
def test_request__recorded__as_it_was_sent(recording: Recording) -> None:
    url, body, warnings = sent(recording)
    assert url.endswith(path_of(recording))
    assert comparable(recording, body) == comparable(recording, recording.request)
    # Gemini has no place for the detail of an image.
    assert [warning for warning in warnings if "detail" not in warning] == []


@pytest.mark.parametrize("recording", EXCHANGES.all, ids=str)
def test_request__recorded__as_acceptable_to_the_vendors_sdk_as_it_was(recording: Recording) -> None:
    accepts = ACCEPTED[recording.provider if recording.provider in ACCEPTED else recording.api]
    assert accepts(sent(recording)[1]) or not accepts(recording.request)


@pytest.mark.parametrize("recording", EXCHANGES.whole, ids=str)
def test_answer__recorded__as_the_sdk_reads_it(recording: Recording) -> None:
    answer, theirs = (
        adapter_for(recording.provider).parse_response(request_of(recording), recording.body),
        read(recording),
    )
    completion = json.loads(answer.body)
    ours = of_completion(completion)
    assert_same(ours, theirs, has_ids=not recording.api.startswith("google."))
    assert_counted(answer.usage, theirs)
    assert answer.usage is not None
    assert completion["usage"]["total_tokens"] == answer.usage.total_tokens
    assert (answer.model, answer.finish_reason) == (ours.model, ours.choices[0].finish)


@pytest.mark.parametrize("recording", ENDED, ids=str)
def test_stream__recorded__as_the_sdk_reads_it(recording: Recording) -> None:
    replayed, theirs = replay(stream_of(recording), [recording.body]), read(recording)
    assert replayed.error is None
    chunks = [json.loads(event.data) for event in replayed.events]
    ours = of_chunks(chunks)
    assert_same(ours, theirs, has_ids=not recording.api.startswith("google."))
    assert_counted(replayed.stream.usage, theirs)
    assert replayed.stream.finish_reason == ours.choices[0].finish
    assert "".join(event.text for event in replayed.events) == ours.choices[0].text


@pytest.mark.parametrize("recording", ENDED, ids=str)
def test_stream__recorded__is_framed_as_specified(recording: Recording) -> None:
    replayed = replay(stream_of(recording), [recording.body])
    chunks = [json.loads(event.data) for event in replayed.events]
    for chunk in chunks:
        assert chunk["object"] == "chat.completion.chunk"
        assert (type(chunk["id"]), type(chunk["created"]), type(chunk["model"])) == (str, int, str)
        assert chunk["choices"]
    assert not any(chunk.get("usage") or (chunk.get("x_groq") or {}).get("usage") for chunk in chunks[:-1])
    assert bool(chunks[-1].get("usage")) is (replayed.stream.usage is not None)
    assert [choice["delta"] for choice in chunks[-1]["choices"]] == [{}]
    indices = [choice["index"] for chunk in chunks for choice in chunk["choices"]]
    ended = [choice["index"] for chunk in chunks for choice in chunk["choices"] if choice["finish_reason"]]
    assert sorted(ended) == sorted(set(indices))


@pytest.mark.parametrize("recording", EXCHANGES.streams, ids=str)
def test_stream__recorded_and_cut_anywhere__byte_equal(recording: Recording) -> None:
    assert_same_however_cut(recording, lambda: stream_of(recording))


@pytest.mark.parametrize("recording", ENDED, ids=str)
def test_stream__recorded_and_broken_off__unusable(recording: Recording) -> None:
    marks = (b"messageStop", b'"finishReason"', b'"message-end"', b'"message_delta"', b'"finish_reason"')
    end = min((place for mark in marks if (place := recording.body.find(mark)) >= 0), default=len(recording.body))
    for share in (0.0, 0.3, 0.9):
        error = replay(stream_of(recording), [recording.body[: int(end * share)]]).error
        assert error is not None
        assert error.kind is FailureKind.UNUSABLE


@pytest.mark.parametrize("recording", BROKEN, ids=str)
def test_stream__recorded_with_an_error_in_it__the_vendors_words(recording: Recording) -> None:
    error = replay(stream_of(recording), [recording.body]).error
    assert error is not None
    assert json.dumps(error.message)[1:-1] in recording.body.decode()
    assert error.kind in (FailureKind.UNAVAILABLE, FailureKind.RATE_LIMITED, FailureKind.REJECTED)


@pytest.mark.parametrize("recording", EXCHANGES.errors, ids=str)
def test_failure__recorded__kind_of_its_status_and_message_kept(recording: Recording) -> None:
    error = classified_failure(adapter_for(recording.provider), recording)
    assert error.message == message_of(recording.body) or not error.message.startswith(("{", "["))
    assert error.message
    if not recording.api.startswith("google."):
        assert_retry_after(error, recording)


def message_of(body: bytes) -> str:
    """Returns the vendor's words in an error, where they stand in one of the two usual places."""
    try:
        error = json.loads(body)
    except ValueError:
        return ""
    inner = error.get("error") if isinstance(error, Mapping) else None
    return str((inner if isinstance(inner, Mapping) else error).get("message", ""))
