"""Every recorded exchange in a vendor's own dialect, replayed as upstream of a running gateway and read by the SDK."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote
from zlib import crc32

import openai
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from tests.fakes.dialects.registry import FAKES
from tests.fakes.replay import ReplayServer, at_random, body_of, cut_at, single_bytes, whole
from tests.gateway.native import NATIVE, canonical, native_answer
from tests.gateway.own_exchanges import own_exchanges
from tests.gateway.recorded import RecordedAnswer, Recording, exchanges
from tests.gateway.reversed import openai_request
from tests.gateway.service import Gateway, GatewayService
from tests.gateway.stage import integration_of
from tests.gateway.test_recordings import assert_failure_of, assert_headers, named, read_chunks, read_whole
from tests.gateway.wire import assert_closing_chunk, assert_error, read_stream, without_comments

pytestmark = pytest.mark.recordings

ALL = [*own_exchanges(), *exchanges(*NATIVE)]
GOOD = [r for r in ALL if r["response"]["status"] == 200 and "resp:stream_error" not in r["features"]]
WHOLE = [r for r in GOOD if not r["response"]["stream"]]
STREAMS = [r for r in GOOD if r["response"]["stream"]]
BROKEN = [r for r in ALL if "resp:stream_error" in r["features"]]
FAILED = [r for r in ALL if r["response"]["status"] != 200]

ProjectOf = Callable[[Recording], Gateway]
_CREATED = re.compile(rb'"created": ?\d+')


@pytest.fixture(scope="module")
def replay() -> Iterator[ReplayServer]:
    with ReplayServer({recording["name"]: recording for recording in ALL}) as server:
        yield server


@pytest.fixture(scope="module")
def project_of(service: GatewayService, replay: ReplayServer) -> ProjectOf:
    """Makes the project whose only provider is the recording."""
    made: dict[str, Gateway] = {}

    def project(recording: Recording) -> Gateway:
        name = recording["name"]
        if name not in made:
            fake = FAKES[recording["provider"]]
            made[name] = service.new_project(integrations=[integration_of(fake, replay.base_url(name))])
        return made[name]

    return project


def model_name(recording: Recording) -> str:
    return unquote(recording["model"])


def request_body(recording: Recording) -> dict[str, Any]:
    """Returns the request as a client of OpenAI's dialect writes it."""
    return {**openai_request(recording), "model": f"{recording['provider']}/{model_name(recording)}"}


def as_call(recording: Recording) -> dict[str, Any]:
    """Returns the arguments for the SDK; fields without an argument go into its extra body."""
    given = request_body(recording)
    call: dict[str, Any] = {name: given.pop(name) for name in ("model", "messages", "stream") if name in given}
    return {**call, "extra_body": given}


def with_canonical_arguments(answer: RecordedAnswer) -> RecordedAnswer:
    for choice in answer.choices.values():
        choice.calls = [(name, canonical(arguments)) for name, arguments in choice.calls]
    return answer


def assert_same(seen: RecordedAnswer, recording: Recording) -> None:
    expected = native_answer(recording)
    assert with_canonical_arguments(seen).choices == expected.choices
    assert expected.usage is not None
    assert seen.usage is not None
    assert {name: seen.usage[name] for name in expected.usage} == expected.usage


@named(WHOLE)
def test_recording__whole__comes_out_as_recorded(project_of: ProjectOf, recording: Recording) -> None:
    gateway = project_of(recording)
    with gateway.openai() as client:
        raw = client.chat.completions.with_raw_response.create(**as_call(recording))

    ChatCompletion.model_validate_json(raw.content)
    assert_same(read_whole(raw.parse()), recording)
    assert_headers(raw.headers, recording)


@named(STREAMS)
def test_recording__streamed__comes_out_as_recorded(project_of: ProjectOf, recording: Recording) -> None:
    gateway = project_of(recording)
    with gateway.openai() as client:
        raw = client.chat.completions.with_raw_response.create(**as_call(recording))
        chunks = list(raw.parse())

    assert_same(read_chunks(chunks), recording)
    assert_headers(raw.headers, recording)


@named(STREAMS)
def test_recording__streamed__the_sdks_helper_puts_it_together(project_of: ProjectOf, recording: Recording) -> None:
    """The SDK's helper joins deltas by its own rules, which a provider's citations or reasoning must not break."""
    call = as_call(recording)
    call.pop("stream")
    # The request has no schema here: the helper asks for strict ones of its own and would parse the answer by them.
    call["extra_body"].pop("response_format", None)
    with project_of(recording).openai() as client, client.chat.completions.stream(**call) as events:
        snapshots = [event.snapshot for event in events if event.type == "chunk"]
    expected = native_answer(recording)
    (choice,) = snapshots[-1].choices
    assert (choice.message.content or "", choice.finish_reason) == (
        expected.choices[0].text,
        expected.choices[0].finish,
    )
    calls = [(call.function.name, canonical(call.function.arguments)) for call in choice.message.tool_calls or ()]
    assert calls == expected.choices[0].calls


@named(STREAMS)
def test_recording__streamed__is_framed_as_specified(project_of: ProjectOf, recording: Recording) -> None:
    gateway = project_of(recording)

    response = gateway.post(request_body(recording))

    stream = read_stream(response.content)
    for chunk in stream.chunks:
        ChatCompletionChunk.model_validate(chunk)
    usage = assert_closing_chunk(stream)
    assert {chunk["object"] for chunk in stream.chunks} == {"chat.completion.chunk"}
    assert all({"id", "created", "model", "choices"} <= set(chunk) for chunk in stream.chunks)
    assert not stream.errors
    record = gateway.record(response)
    assert (record.outcome, record.status_code, record.provider) == ("success", 200, recording["provider"])
    assert record.prompt_tokens == usage["prompt_tokens"]
    assert not record.tokens_estimated


@named(STREAMS)
def test_recording__split_anywhere__gives_the_same_bytes(
    replay: ReplayServer, project_of: ProjectOf, recording: Recording
) -> None:
    gateway = project_of(recording)
    size = len(body_of(recording["response"]))
    seed = crc32(recording["name"].encode())
    splits = [at_random(seed), at_random(seed + 1, max_length=3 + size // 20)]
    if size < 10_000:
        splits.append(single_bytes)

    outputs = []
    for split in [whole, *splits]:
        replay.splits[recording["name"]] = split
        content = without_comments(gateway.post(request_body(recording)).content)
        outputs.append(_CREATED.sub(b'"created":0', content))
    replay.splits.pop(recording["name"])

    assert set(outputs) == {outputs[0]}


@named(STREAMS)
def test_recording__cut_before_its_end__is_an_error_and_not_an_answer(
    replay: ReplayServer, project_of: ProjectOf, recording: Recording
) -> None:
    gateway = project_of(recording)
    name = recording["name"]
    replay.splits[name] = cut_at(0.6)
    replay.truncated.add(name)

    response = gateway.post(request_body(recording))

    replay.truncated.discard(name)
    replay.splits.pop(name)
    if response.status_code != 200:
        assert response.status_code in (500, 503), response.text
        return
    stream = read_stream(response.content)
    assert len(stream.errors) == 1
    assert "error" in stream.chunks[-1]
    assert gateway.record(response).outcome == "error"


@named(BROKEN)
def test_recording__error_inside_a_200__is_a_status_or_one_event(project_of: ProjectOf, recording: Recording) -> None:
    gateway = project_of(recording)
    expected = native_answer(recording)

    response = gateway.post(request_body(recording))

    if expected.choices[0].text:
        (error,) = read_stream(response.content).errors
        assert expected.error in error["message"]
    else:
        assert expected.error in assert_error(response, 503, "provider_unavailable")
    with gateway.openai() as client, pytest.raises(openai.APIError):
        list(client.chat.completions.create(**as_call(recording)))


@named(FAILED)
def test_recording__failure__has_its_status_and_the_providers_words(
    project_of: ProjectOf, recording: Recording
) -> None:
    gateway = project_of(recording)

    response = gateway.post(request_body(recording))

    status, code = assert_failure_of(response, recording)
    record = gateway.record(response)
    assert (record.outcome, record.status_code, record.error_code) == ("error", status, code)
    assert {attempt.status for attempt in record.attempts} == {recording["response"]["status"]}
