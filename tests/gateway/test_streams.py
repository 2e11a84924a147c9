"""A client's view of a stream that is silent, empty, late or broken."""

from __future__ import annotations

import threading

import pytest

from tests.fakes import scripted as play
from tests.gateway.conftest import Scripted
from tests.gateway.service import Gateway
from tests.gateway.wire import ENDPOINT, Stream, assert_closing_chunk, assert_error, body, read_stream
from tests.tables.cases import tabled
from tests.waiting import TIMEOUT_SECONDS

STREAM = body(stream=True)
HEARTBEAT = b": keep-alive\n\n"
WORD = play.chunk({"content": "word"})


def stream_with_pauses(gateway: Gateway, silences: dict[int, threading.Event]) -> Stream:
    """Returns the steps of a provider that pauses after so many words until two comments have filled its silence."""
    received = b""
    with gateway.client.stream("POST", ENDPOINT, json=STREAM, headers=gateway.headers) as response:
        assert response.status_code == 200
        for piece in response.iter_raw():
            received += piece
            silence = silences.get(received.count(b'"word"'))
            if silence is not None and received.rpartition(b"data: ")[2].count(HEARTBEAT) == 2:
                silence.set()
    return read_stream(received)


def test_silence__before_the_first_output__is_filled_with_comments(brisk_scripted: Scripted) -> None:
    silence = threading.Event()
    gateway, _ = brisk_scripted(play.stream(play.ROLE, silence, WORD, play.FINISH, play.USAGE_CHUNK, play.DONE))

    stream = stream_with_pauses(gateway, {0: silence})

    assert stream.comments >= 2
    assert stream.text == "word"
    assert_closing_chunk(stream)


def test_silence__within_a_stream__is_filled_with_comments_at_event_borders(brisk_scripted: Scripted) -> None:
    first, second = threading.Event(), threading.Event()
    half = WORD[:25]
    gateway, _ = brisk_scripted(
        play.stream(play.ROLE, WORD, half, first, WORD[25:], second, play.FINISH, play.USAGE_CHUNK, play.DONE)
    )

    stream = stream_with_pauses(gateway, {1: first, 2: second})

    assert stream.comments >= 4
    assert stream.text == "wordword"


def test_stream__without_silence__has_no_comment(scripted: Scripted) -> None:
    words = [play.chunk({"content": "x"})] * 5
    gateway, _ = scripted(
        play.stream(play.ROLE, *(p for word in words for p in (word, 0.1)), play.FINISH, play.USAGE_CHUNK, play.DONE)
    )

    assert read_stream(gateway.post(STREAM).content).comments == 0


def test_provider_comments__are_not_passed_on(scripted: Scripted) -> None:
    gateway, _ = scripted(play.stream(b": PROCESSING\n\n", *play.text_events("a", "b"), b": bye\n\n"))

    stream = read_stream(gateway.post(STREAM).content)

    assert (stream.text, stream.comments) == ("ab", 0)


@pytest.mark.parametrize("include", [True, False, None])
def test_usage__whatever_the_client_requested__comes_once_and_is_requested_upstream(
    scripted: Scripted, include: bool | None
) -> None:
    gateway, script = scripted(play.answer("one two three"))
    options = {} if include is None else {"stream_options": {"include_usage": include}}

    stream = read_stream(gateway.post({**STREAM, **options}).content)

    assert assert_closing_chunk(stream) == play.USAGE
    assert b'"include_usage":true' in script.received[0].body.replace(b" ", b"")


@tabled
def test_usage__wherever_the_provider_puts_it__comes_once_in_the_last_chunk(
    scripted: Scripted, ending: list[bytes]
) -> None:
    gateway, _ = scripted(play.stream(play.ROLE, WORD, *ending, play.DONE))

    response = gateway.post(STREAM)

    usage = assert_closing_chunk(read_stream(response.content))
    assert {name: usage[name] for name in play.USAGE} == play.USAGE
    record = gateway.record(response)
    assert (record.prompt_tokens, record.completion_tokens, record.tokens_estimated) == (11, 7, False)


def test_usage__never_stated__is_estimated_and_marked(scripted: Scripted) -> None:
    gateway, _ = scripted(play.stream(play.ROLE, WORD, play.FINISH, play.DONE))

    response = gateway.post(STREAM)

    usage = assert_closing_chunk(read_stream(response.content))
    record = gateway.record(response)
    assert record.tokens_estimated
    assert (record.prompt_tokens, record.completion_tokens) == (usage["prompt_tokens"], usage["completion_tokens"])
    assert usage["completion_tokens"] > 0


def test_stream__without_terminator_but_finished__is_an_answer(scripted: Scripted) -> None:
    gateway, _ = scripted(play.stream(play.ROLE, WORD, play.FINISH, play.USAGE_CHUNK))

    stream = read_stream(gateway.post(STREAM).content)

    assert_closing_chunk(stream)
    assert not stream.errors


ERROR_EVENT = b'data: {"error":{"message":"went away","type":"server_error","code":"x"}}\n\n'

BREAKS = {
    "error event": play.stream(play.ROLE, WORD, ERROR_EVENT),
    "named error event": play.stream(play.ROLE, WORD, b"event: error\n" + ERROR_EVENT),
    "end without finish": play.stream(play.ROLE, WORD),
    "reset": play.stream(play.ROLE, WORD, 0.1, end="reset"),
    "hang up": play.stream(play.ROLE, WORD, 0.1, end="hang_up"),
    "not JSON": play.stream(play.ROLE, WORD, b"data: {broken\n\n", play.FINISH, play.DONE),
    "not UTF-8": play.stream(play.ROLE, WORD, b'data: {"choices":"\xff\n\n', play.FINISH, play.DONE),
    "not an object": play.stream(play.ROLE, WORD, b"data: 5\n\n", play.FINISH, play.DONE),
}


@pytest.mark.parametrize("step", BREAKS.values(), ids=BREAKS.keys())
def test_break__after_output__is_one_error_event_then_done(scripted: Scripted, step: play.Step) -> None:
    assert_broken_off(*scripted(step))


def test_silence__beyond_the_idle_time__is_one_error_event_then_done(brisk_scripted: Scripted) -> None:
    assert_broken_off(*brisk_scripted(play.stream(play.ROLE, WORD, end="hang")))


def assert_broken_off(gateway: Gateway, script: play.Script) -> None:
    response = gateway.post(STREAM)

    assert response.status_code == 200
    stream = read_stream(response.content)
    assert stream.text == "word"
    assert len(stream.errors) == 1
    assert set(stream.chunks[-1]) == {"error"}
    assert set(stream.errors[0]) == {"message", "type", "code"}
    record = gateway.record(response)
    assert record.outcome == "error"
    assert record.completion_tokens > 0
    assert len(script.received) == 1, "no second stream after output"


BEFORE = {
    "error event": (play.stream(ERROR_EVENT), 503, "provider_unavailable"),
    "error event after preamble": (play.stream(play.ROLE, ERROR_EVENT), 503, "provider_unavailable"),
    "nothing": (play.stream(), 500, "provider_error"),
    "preamble only": (play.stream(play.ROLE), 500, "provider_error"),
    "reset before the head": (play.reset, 503, "provider_unavailable"),
    "hang up before the head": (play.hang_up, 503, "provider_unavailable"),
    "reset after preamble": (play.stream(play.ROLE, 0.05, end="reset"), 503, "provider_unavailable"),
    "garbage": (play.garbage, 500, "provider_error"),
    "a web page": (play.raw(200, b"<html></html>", {"content-type": "text/html"}), 500, "provider_error"),
    "status 503": (play.status(503), 503, "provider_unavailable"),
    "status 529": (play.status(529), 503, "provider_unavailable"),
    "status 429": (play.status(429), 503, "provider_unavailable"),
    "status 401": (play.status(401), 500, "provider_error"),
    "status 400": (play.status(400), 400, "provider_rejected"),
    "status 302": (play.status(302, headers={"location": "http://127.0.0.1:9/"}), 503, "provider_unavailable"),
}


@pytest.mark.parametrize(("step", "status", "code"), BEFORE.values(), ids=BEFORE.keys())
def test_failure__before_output__is_a_status(scripted: Scripted, step: play.Step, status: int, code: str) -> None:
    gateway, _ = scripted(step)
    gateway.service.set_routing(gateway.project_id, retry_enabled=False)

    response = gateway.post(STREAM)

    assert_error(response, status, code)
    record = gateway.record(response)
    assert (record.outcome, record.status_code) == ("error", response.status_code)


WHOLE_FAILURES = {
    "reset": (play.reset, 503, "provider_unavailable"),
    "hang up": (play.hang_up, 503, "provider_unavailable"),
    "no JSON": (play.raw(200, b"hello"), 500, "provider_error"),
    "empty body": (play.raw(200, b""), 500, "provider_error"),
    "empty object": (play.raw(200, b"{}"), 500, "provider_error"),
    "array": (play.raw(200, b"[]"), 500, "provider_error"),
    "error under 200": (play.raw(200, b'{"error":{"message":"no"}}'), 503, "provider_unavailable"),
    "invalid UTF-8": (play.raw(200, b'{"choices":"\xff"}'), 500, "provider_error"),
    "status 418": (play.status(418), None, ""),
    "status 599": (play.status(599), None, ""),
}


@pytest.mark.parametrize(("step", "status", "code"), WHOLE_FAILURES.values(), ids=WHOLE_FAILURES.keys())
def test_failure__of_a_whole_answer__is_a_status(
    scripted: Scripted, step: play.Step, status: int | None, code: str
) -> None:
    gateway, _ = scripted(step)

    response = gateway.post(body())

    assert_error(response, status or response.status_code, code or response.json()["error"]["code"])
    assert response.status_code in (400, 500, 503)
    assert gateway.record(response).outcome == "error"


@pytest.mark.parametrize("stream", [True, False])
def test_provider__silent_before_its_head__is_503_timeout(brisk_scripted: Scripted, stream: bool) -> None:
    gateway, script = brisk_scripted(play.hang)

    response = gateway.post(body(stream=stream))

    if stream:
        # The heartbeat committed the status long before.
        (error,) = read_stream(response.content).errors
        assert error["code"] == "provider_timeout"
    else:
        assert_error(response, 503, "provider_timeout", type="service_unavailable_error")
    assert gateway.record(response).error_code == "provider_timeout"
    assert script.received[0].gone.wait(TIMEOUT_SECONDS)


def test_provider__not_listening__is_503(scripted: Scripted) -> None:
    gateway, _ = scripted(play.answer())
    dead = gateway.service.new_project(base_urls={"openai": "http://127.0.0.1:9"})

    for stream in (True, False):
        assert_error(dead.post(body(stream=stream)), 503, "provider_unavailable")


def test_failover__to_the_next_model__is_shown_in_headers(scripted: Scripted) -> None:
    gateway, script = scripted(play.status(503), play.answer("from the second"))
    gateway.service.set_routing(gateway.project_id, retry_enabled=False)

    response = gateway.post(body(model="openai/gpt-first", models=["openai/gpt-second"]))

    assert response.status_code == 200, response.text
    assert response.headers["x-svc-model-used"] == "gpt-second"
    assert response.headers["x-svc-original-model"] == "openai/gpt-first"
    assert len(script.received) == 2
    record = gateway.record(response)
    assert [attempt.status for attempt in record.attempts] == [503, 200]
    assert record.requested_model == "openai/gpt-first"


def test_failover__of_a_stream_that_failed_after_preamble__starts_no_second_answer_in_the_first(
    scripted: Scripted,
) -> None:
    gateway, _ = scripted(play.stream(play.ROLE, ERROR_EVENT), play.answer("good"))
    gateway.service.set_routing(gateway.project_id, retry_enabled=False)

    response = gateway.post(body(stream=True, models=["openai/gpt-second"]))

    stream = read_stream(response.content)
    assert stream.text == "good"
    assert not stream.errors
    assert response.headers["x-svc-model-used"] == "gpt-second"


def test_rejection__is_never_failed_over(scripted: Scripted) -> None:
    gateway, script = scripted(play.status(400, "bad temperature"), play.answer())

    response = gateway.post(body(models=["openai/gpt-second"]))

    assert "bad temperature" in assert_error(response, 400, "provider_rejected")
    assert len(script.received) == 1


def test_model__that_no_provider_serves__is_404(scripted: Scripted) -> None:
    gateway, script = scripted(play.answer())

    for model in ("claude-sonnet-4", "groq/llama3", "nothing/known", "auto"):
        assert_error(gateway.post(body(model=model)), 404, "model_not_found", type="not_found_error")
    assert not script.received


def test_models__lists_prefixes_in_openai_shape(scripted: Scripted) -> None:
    gateway, _ = scripted(play.answer())

    with gateway.openai() as client:
        models = list(client.models.list())

    assert any(model.id.startswith("gpt-") and model.owned_by == "openai" for model in models)


def test_first_word__does_not_wait_for_the_last(scripted: Scripted) -> None:
    # The last event never comes: the provider sends until the gateway hangs up.
    gateway, _ = scripted(play.endless())

    with gateway.client.stream("POST", ENDPOINT, json=STREAM, headers=gateway.headers) as response:
        assert any(b"word" in piece for piece in response.iter_raw())
