"""Every recorded exchange of a provider, replayed as upstream of a running gateway and read by OpenAI's SDK."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import unquote
from zlib import crc32

import openai
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from tests.fakes.dialects.registry import FAKES
from tests.fakes.replay import (
    ReplayServer,
    Splitter,
    at_random,
    body_of,
    cut_at,
    inside_characters,
    single_bytes,
    whole,
)
from tests.gateway import native, recorded
from tests.gateway.own_exchanges import own_exchanges
from tests.gateway.recorded import Choice, RecordedAnswer, Recording, exchanges, text_of, upstream_message
from tests.gateway.reversed import openai_request
from tests.gateway.service import PROVIDER_SECRET, Gateway, GatewayService
from tests.gateway.stage import integration_of
from tests.gateway.wire import assert_closing_chunk, assert_error, read_stream, without_comments
from tests.night import cases
from tests.recordings import OPENAI_DIALECT

pytestmark = pytest.mark.recordings

ALL = [*own_exchanges(), *exchanges(OPENAI_DIALECT, *native.NATIVE)]
GOOD = [r for r in ALL if r["response"]["status"] == 200 and "resp:stream_error" not in r["features"]]
WHOLE = [r for r in GOOD if not r["response"]["stream"]]
STREAMS = [r for r in GOOD if r["response"]["stream"]]
BROKEN = [r for r in ALL if "resp:stream_error" in r["features"]]
FAILED = [r for r in ALL if r["response"]["status"] != 200]
# Every recorded stream is cut anywhere below `tests/integrations/recordings`: here the gateway's part of it is tested.
CUT = cases(STREAMS, by_day=list({r["provider"]: r for r in STREAMS}.values()))

# The client sees these statuses and codes for a provider's status when no other provider can serve (docs/routing.md).
STATUSES = {
    400: (400, "provider_rejected"),
    413: (400, "context_length_exceeded"),
    422: (400, "provider_rejected"),
    401: (500, "provider_error"),
    403: (500, "provider_error"),
    404: (404, "model_not_found"),
    429: (503, "provider_unavailable"),
    500: (503, "provider_unavailable"),
    502: (503, "provider_unavailable"),
    503: (503, "provider_unavailable"),
}
# These codes of a provider are passed on as they are, whatever its status.
OF_ITS_OWN = {
    "context_length_exceeded": (400, "context_length_exceeded"),
    "content_filter": (400, "content_filter"),
    "insufficient_quota": (503, "insufficient_quota"),
}
# With these words Google and xAI answer a wrong key, under the status of a wrong request.
REFUSED_KEYS = ("API key not valid", "Incorrect API key provided")
# These fields are the gateway's own: it acts on them and does not pass them on.
OWN_FIELDS = ("models", "provider")

ProjectOf = Callable[[Recording], Gateway]


def named(recordings: Sequence[Recording]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("recording", recordings, ids=[f"{r['provider']}-{r['name']}" for r in recordings])


def is_of_openai(recording: Recording) -> bool:
    """Returns whether the provider speaks OpenAI's dialect, so that the gateway forwards what the client sent."""
    return bool(recording["api"] == OPENAI_DIALECT)


def expected(recording: Recording) -> RecordedAnswer:
    """Returns what a client should see; the arguments of its calls are JSON with sorted keys."""
    if not is_of_openai(recording):
        return native.native_answer(recording)
    return with_canonical_arguments(recorded.expected(recording))


def with_canonical_arguments(answer: RecordedAnswer) -> RecordedAnswer:
    for choice in answer.choices.values():
        choice.calls = [(name, native.canonical(arguments)) for name, arguments in choice.calls]
    return answer


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
            provider, url = recording["provider"], replay.base_url(name)
            if is_of_openai(recording):
                row = {"provider": provider, "base_url": url, "api_key": PROVIDER_SECRET}
            else:
                row = integration_of(FAKES[provider], url)
            # Some recordings name files that were uploaded at the vendor.
            made[name] = service.new_project(integrations=[{**row, "own_account": True}])
        return made[name]

    return project


def request_body(recording: Recording) -> dict[str, Any]:
    """Returns the request as a client of OpenAI's dialect writes it."""
    if not is_of_openai(recording):
        return {**openai_request(recording), "model": f"{recording['provider']}/{unquote(recording['model'])}"}
    given = {name: value for name, value in recording["request"]["body"].items() if name not in OWN_FIELDS}
    return {**given, "model": f"{recording['provider']}/{recording['model']}"}


def read_whole(answer: ChatCompletion) -> RecordedAnswer:
    seen = RecordedAnswer(usage=answer.usage.model_dump() if answer.usage else None)
    for choice in answer.choices:
        calls = [
            (c.function.name, c.function.arguments) for c in choice.message.tool_calls or [] if c.type == "function"
        ]
        seen.choices[choice.index] = Choice(text_of(choice.message.content), calls, choice.finish_reason)
    return seen


def read_chunks(chunks: list[ChatCompletionChunk]) -> RecordedAnswer:
    seen = RecordedAnswer()
    calls: dict[tuple[int, int], list[str]] = {}
    for chunk in chunks:
        seen.usage = chunk.usage.model_dump() if chunk.usage else seen.usage
        for choice in chunk.choices:
            known = seen.choices.setdefault(choice.index, Choice())
            known.text += text_of(choice.delta.content)
            known.finish = choice.finish_reason or known.finish
            for call in choice.delta.tool_calls or []:
                assert call.function is not None
                entry = calls.setdefault((choice.index, call.index), ["", ""])
                entry[0] += call.function.name or ""
                entry[1] += call.function.arguments or ""
    for (index, _), (name, arguments) in sorted(calls.items()):
        seen.choices[index].calls.append((name, arguments))
    return seen


def assert_same(seen: RecordedAnswer, expected_answer: RecordedAnswer) -> None:
    assert with_canonical_arguments(seen).choices == expected_answer.choices
    if expected_answer.usage is not None:
        assert seen.usage is not None
        assert seen.usage["prompt_tokens"] == expected_answer.usage["prompt_tokens"]
        assert seen.usage["total_tokens"] == expected_answer.usage["total_tokens"]


def assert_headers(headers: Any, recording: Recording) -> None:
    assert headers["x-svc-provider"] == recording["provider"]
    assert headers["x-svc-model-used"]
    assert headers["x-svc-cache"] == "skip"
    assert headers["x-svc-retry-count"] == "0"
    assert headers["x-request-id"] != recording["response"]["headers"].get("x-request-id")
    assert "x-svc-fallback-used" not in headers
    assert "x-svc-original-model" not in headers
    assert not [name for name in headers if name.startswith("x-ratelimit")]


def assert_forwarded(replay: ReplayServer, recording: Recording) -> None:
    """Asserts that a provider of OpenAI's dialect got what the client sent, as JSON values, with its own name of the
    model."""
    if not is_of_openai(recording):
        return
    (received, *_) = replay.received_by(recording["name"])
    sent = json.loads(received.body)
    request = request_body(recording)
    if request.get("stream"):
        sent.pop("stream_options", None)
        request.pop("stream_options", None)
    assert sent.pop("model", recording["model"]) == recording["model"]
    request.pop("model")
    assert sent == request
    assert received.headers.get("accept-encoding", "identity") == "identity"


@named(WHOLE)
def test_recording__whole__comes_out_as_recorded(
    replay: ReplayServer, project_of: ProjectOf, recording: Recording
) -> None:
    gateway = project_of(recording)
    with gateway.openai() as client:
        raw = client.chat.completions.with_raw_response.create(**as_call(recording))

    assert_same(read_whole(raw.parse()), expected(recording))
    assert_headers(raw.headers, recording)
    assert_forwarded(replay, recording)
    body = json.loads(raw.content)
    assert body["object"] == "chat.completion"
    assert {"id", "created", "model", "choices", "usage"} <= set(body)
    if not is_of_openai(recording):
        ChatCompletion.model_validate(body)


@named(STREAMS)
def test_recording__streamed__comes_out_as_recorded(
    replay: ReplayServer, project_of: ProjectOf, recording: Recording
) -> None:
    gateway = project_of(recording)
    with gateway.openai() as client:
        raw = client.chat.completions.with_raw_response.create(**as_call(recording))
        chunks = list(raw.parse())

    assert_same(read_chunks(chunks), expected(recording))
    assert_headers(raw.headers, recording)
    assert_forwarded(replay, recording)


@named(STREAMS)
def test_recording__streamed__is_framed_as_specified(project_of: ProjectOf, recording: Recording) -> None:
    gateway = project_of(recording)

    response = gateway.post(request_body(recording))

    stream = read_stream(response.content)
    usage = assert_closing_chunk(stream)
    assert {chunk["object"] for chunk in stream.chunks} == {"chat.completion.chunk"}
    assert all({"id", "created", "model", "choices"} <= set(chunk) for chunk in stream.chunks)
    assert not stream.errors
    record = gateway.record(response)
    assert (record.outcome, record.status_code, record.provider) == ("success", 200, recording["provider"])
    assert record.prompt_tokens == usage["prompt_tokens"]
    assert record.tokens_estimated is (expected(recording).usage is None)
    if not is_of_openai(recording):
        for chunk in stream.chunks:
            ChatCompletionChunk.model_validate(chunk)


_MADE_UP_ID = re.compile(rb'"id":"chatcmpl-[0-9a-f]{24}"')
_CREATED = re.compile(rb'"created": ?\d+')
_TIMED = re.compile(_CREATED.pattern + b"|" + _MADE_UP_ID.pattern)


@named(CUT)
def test_recording__split_anywhere__gives_the_same_bytes(
    replay: ReplayServer, project_of: ProjectOf, recording: Recording
) -> None:
    gateway = project_of(recording)
    size = len(body_of(recording["response"]))
    seed = crc32(recording["name"].encode())
    splits: list[Splitter] = [inside_characters, at_random(seed), at_random(seed + 1, max_length=3 + size // 20)]
    if size < 10_000:
        splits.append(single_bytes)

    outputs = []
    for split in [whole, *splits]:
        replay.splits[recording["name"]] = split
        output = without_comments(gateway.post(request_body(recording)).content)
        # Where the provider sends no time, the chunks have the current second, and an id made of it.
        made_up = _MADE_UP_ID.search(output)
        outputs.append(_TIMED.sub(b"", output) if made_up or not is_of_openai(recording) else output)
    replay.splits.pop(recording["name"])

    assert set(outputs) == {outputs[0]}


@named(CUT)
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
def test_recording__error_inside_a_200__is_a_status_or_one_event_and_the_end(
    project_of: ProjectOf, recording: Recording
) -> None:
    gateway = project_of(recording)
    answer = expected(recording)

    response = gateway.post(request_body(recording))

    # The recordings of OpenAI's dialect break off behind output, which may be reasoning.
    if is_of_openai(recording) or answer.choices[0].text:
        stream = read_stream(response.content)
        (error,) = stream.errors
        assert "error" in stream.chunks[-1]
        assert set(error) == {"message", "type", "code"}
        assert answer.error in error["message"]
        assert stream.text == answer.choices[0].text
    else:
        assert answer.error in assert_error(response, 503, "provider_unavailable")
    assert gateway.record(response).outcome == "error"
    with gateway.openai() as client, pytest.raises(openai.APIError):
        list(client.chat.completions.create(**as_call(recording)))


def assert_failure_of(response: Any, recording: Recording) -> tuple[int, str]:
    """Returns the status and the code that the client sees of a recorded failure."""
    answer = recording["response"]
    status, code = STATUSES.get(answer["status"], (503, "provider_unavailable"))
    for vendor_code, translation in OF_ITS_OWN.items():
        if f'"{vendor_code}"' in (answer.get("body_text") or ""):
            status, code = translation
    if any(words in (answer.get("body_text") or "") for words in REFUSED_KEYS):
        status, code = 500, "provider_error"
    provider_error_of = recording["provider"] if code in OF_ITS_OWN else ""
    message = assert_error(response, status, code, provider_error_of=provider_error_of)
    assert upstream_message(recording)[:20] in message
    return status, code


@named(FAILED)
def test_recording__failure__has_its_status_and_the_providers_words(
    project_of: ProjectOf, recording: Recording
) -> None:
    gateway = project_of(recording)

    response = gateway.post(with_valid_content(request_body(recording)))

    status, code = assert_failure_of(response, recording)
    record = gateway.record(response)
    assert (record.outcome, record.status_code, record.error_code) == ("error", status, code)
    # Every retry got the same recorded answer.
    assert {attempt.status for attempt in record.attempts} == {recording["response"]["status"]}


def with_valid_content(body: dict[str, Any]) -> dict[str, Any]:
    """Returns the request with valid content: two recordings show providers that refuse an object as content, which the
    gateway refuses first."""
    messages = [
        {**message, "content": "hi"} if isinstance(message.get("content"), dict) else message
        for message in body["messages"]
    ]
    return {**body, "messages": messages}


def as_call(recording: Recording) -> dict[str, Any]:
    """Returns the arguments for the SDK; fields without an argument go into its extra body."""
    given = request_body(recording)
    call: dict[str, Any] = {name: given.pop(name) for name in ("model", "messages", "stream") if name in given}
    return {**call, "extra_body": given}


@named(STREAMS)
def test_recording__streamed__the_sdks_helper_puts_it_together(project_of: ProjectOf, recording: Recording) -> None:
    """The SDK's helper joins deltas by its own rules, and raises for events that do not follow them."""
    call = as_call(recording)
    call.pop("stream")
    # The request has no schema here: the helper would parse the answer by it.
    call["extra_body"].pop("response_format", None)
    with project_of(recording).openai() as client, client.chat.completions.stream(**call) as events:
        snapshots = [event.snapshot for event in events if event.type == "chunk"]

    answer = expected(recording)
    for choice in snapshots[-1].choices:
        choice_expected = answer.choices[choice.index]
        assert (choice.message.content or "", choice.finish_reason) == (choice_expected.text, choice_expected.finish)
        calls = [(call.function.name, call.function.arguments) for call in choice.message.tool_calls or ()]
        assert [(name, native.canonical(arguments)) for name, arguments in calls] == choice_expected.calls
