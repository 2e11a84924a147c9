"""Streams of every dialect that break, through a running gateway: before the first output and after it."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from integrations.providers.usage import Usage
from tests.fakes.dialects.registry import FAKES, distinct_providers
from tests.fakes.dialects.server import breaks, fails, stops
from tests.fakes.dialects.story import Story
from tests.gateway.stage import Stage, model_of
from tests.gateway.wire import ENDPOINT, Stream, assert_error, read_stream
from tests.integrations.adapters.subject import subject_of
from tests.waiting import TIMEOUT_SECONDS

PROVIDERS = distinct_providers()
REPORTING = [provider for provider in PROVIDERS if FAKES[provider].can.stream_errors]
HELLO = Story(text="Hello there, dear reader", pieces=6)
BUSY = "the model is overloaded"


def ask(stage: Stage, provider: str, *, stream: bool = True) -> httpx2.Response:
    content: dict[str, Any] = {"model": model_of(provider), "messages": [{"role": "user", "content": "hi"}]}
    return stage.gateway.post({**content, "stream": stream})


def spoken(provider: str) -> int:
    """Returns the number of events of the story up to its first output."""
    subject, events = subject_of(provider), FAKES[provider].stream(HELLO).events
    return next(n for n in range(len(events)) if any(e.has_output for e in subject.translate(events[:n]).events))


def counted(provider: str, events: int) -> Usage | None:
    """Returns the tokens that the provider has stated after so many events of the story."""
    translator = subject_of(provider).translate(FAKES[provider].stream(HELLO).events[:events]).translator
    assert translator is not None
    return translator.usage


def broken(response: httpx2.Response) -> Stream:
    """Asserts that a stream has exactly one error, as its last event before the terminator."""
    assert response.status_code == 200, response.text
    stream = read_stream(response.content)
    (error,) = stream.errors
    assert set(error) == {"message", "type", "code"}
    assert "error" in stream.chunks[-1]
    assert not [chunk for chunk in stream.chunks if chunk.get("usage")]
    return stream


def assert_retried(stage: Stage, response: httpx2.Response) -> None:
    assert stage.gateway.record(response).retry_count == 1
    assert response.headers["x-svc-retry-count"] == "1"


@pytest.mark.parametrize("provider", REPORTING)
def test_stream__error_before_output__is_retried_and_answered(stage: Stage, provider: str) -> None:
    script = stage.play(provider, breaks(FAKES[provider], Story(), BUSY), HELLO)

    response = ask(stage, provider)

    assert response.status_code == 200, response.text
    stream = read_stream(response.content)
    assert (stream.text, stream.errors) == (HELLO.text, [])
    assert_retried(stage, response)
    assert len(script.received) == 2
    record = stage.gateway.record(response)
    assert (record.outcome, len(record.attempts)) == ("success", 2)


@pytest.mark.parametrize("provider", REPORTING)
def test_stream__error_after_output__one_event_at_the_end_and_no_second_answer(stage: Stage, provider: str) -> None:
    script = stage.play(provider, breaks(FAKES[provider], HELLO, BUSY), HELLO)

    response = ask(stage, provider)

    stream = broken(response)
    assert stream.text == HELLO.text
    assert BUSY in stream.errors[0]["message"]
    assert len(script.received) == 1
    record = stage.gateway.record(response)
    assert (record.outcome, record.provider) == ("error", provider)
    # Delivered output is counted, whether or not the provider had counted it by then.
    assert record.completion_tokens >= len(HELLO.text) // 8


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("end", ["hang_up", "reset", "end"])
def test_stream__ended_after_output__an_error_and_not_an_answer(stage: Stage, provider: str, end: str) -> None:
    stage.play(provider, stops(FAKES[provider], HELLO, spoken(provider), end=end), HELLO)

    response = ask(stage, provider)

    stream = broken(response)
    assert stream.text
    assert HELLO.text.startswith(stream.text)
    assert stage.gateway.record(response).outcome == "error"


@pytest.mark.parametrize("provider", PROVIDERS)
def test_stream__left_by_the_client__ends_upstream_and_keeps_what_was_counted(stage: Stage, provider: str) -> None:
    events = spoken(provider)
    script = stage.play(provider, stops(FAKES[provider], HELLO, events, end="hang"))
    gateway = stage.gateway
    content = {"model": model_of(provider), "messages": [{"role": "user", "content": "hi"}], "stream": True}

    with gateway.client.stream("POST", ENDPOINT, json=content, headers=gateway.headers) as response:
        next(response.iter_raw())

    assert script.received[0].gone.wait(TIMEOUT_SECONDS)
    record = gateway.record(response.headers["x-request-id"])
    assert (record.outcome, record.provider) == ("cancelled", provider)
    usage = counted(provider, events)
    assert record.prompt_tokens == usage.prompt_tokens if usage else record.prompt_tokens > 0
    assert record.completion_tokens > 0


@pytest.mark.parametrize("provider", PROVIDERS)
def test_stream__ended_before_output__never_an_empty_answer(stage: Stage, provider: str) -> None:
    stage.play(provider, stops(FAKES[provider], HELLO, 0, end="end"))

    response = ask(stage, provider)

    assert response.status_code in (500, 503), response.text
    assert response.json()["error"]["code"] in ("provider_error", "provider_unavailable")


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("status", [500, 503, 529])
def test_failure__transient__is_retried_and_answered(stage: Stage, provider: str, stream: bool, status: int) -> None:
    stage.play(provider, fails(FAKES[provider], status, "try again"), HELLO)

    response = ask(stage, provider, stream=stream)

    assert response.status_code == 200, response.text
    assert_retried(stage, response)
    assert "x-svc-fallback-used" not in response.headers


@pytest.mark.parametrize("provider", PROVIDERS)
def test_failure__credentials__the_operators_and_not_retried(stage: Stage, provider: str) -> None:
    script = stage.play(provider, fails(FAKES[provider], 401, "who are you"))

    assert_error(ask(stage, provider), 500, "provider_error")
    assert len(script.received) == 1


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("stream", [False, True])
def test_failure__of_one_provider__another_dialect_answers(stage: Stage, provider: str, stream: bool) -> None:
    """The history has signatures of the first provider, none of which reaches the second."""
    second = "anthropic" if provider != "anthropic" else "google"
    signed = {"type": "reasoning.text", "text": "Hm.", "signature": "CANARY", "format": "a-third-vendor-v1", "index": 0}
    stage.play(provider, fails(FAKES[provider], 404, "no such model"))
    script = stage.play(second, HELLO)

    response = stage.gateway.post(
        {
            "model": model_of(provider),
            "models": [model_of(second)],
            "messages": [
                {"role": "user", "content": "hi"},
                {"role": "assistant", "content": "ho", "reasoning_details": [signed]},
                {"role": "user", "content": "again"},
            ],
            "stream": stream,
        }
    )

    assert response.status_code == 200, response.text
    assert response.headers["x-svc-provider"] == second
    assert response.headers["x-svc-fallback-used"] == "true"
    assert response.headers["x-svc-original-model"] == model_of(provider)
    assert b"CANARY" not in script.received[0].body
    (received,) = stage.requests_of(second)
    assert [text for _, text in received.turns] == ["hi", "ho", "again"]
