"""Answers of Gemini without content, and models of other vendors on Vertex AI, through a running gateway."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.fakes import scripted as play
from tests.fakes.dialects.registry import FAKES
from tests.fakes.dialects.server import DialectServer, answer_with, script_path
from tests.fakes.dialects.story import Story
from tests.fakes.scripted import Step
from tests.fakes.upstream import Connection, Received
from tests.gateway.service import Gateway, GatewayService
from tests.gateway.stage import integration_of
from tests.gateway.wire import assert_error, read_stream
from tests.integrations.google_exchanges import answer, body, sse

ASK: dict[str, Any] = {"model": "gemini-2.5-flash", "messages": [{"role": "user", "content": "hi"}]}
PLACES = ("google", "google_vertex")


def sends(*events: dict[str, Any]) -> Step:
    """Makes the provider send the last event to a request for a whole answer, and all events to one for a stream."""

    async def step(received: Received, connection: Connection) -> None:
        if "stream" not in received.path:
            await connection.send_whole(200, body(events[-1]), {"content-type": "application/json"})
            return
        await connection.start_stream()
        await connection.send_chunk(sse(*events))
        await connection.end_stream()

    return step


MALFORMED_CALL = sends(
    answer(finish="MALFORMED_FUNCTION_CALL", candidate={"finishMessage": "Malformed function call: f("})
)
SILENT = sends(answer({"text": "hm", "thought": True}, finish=None), answer(finish="OTHER"))


@pytest.fixture(scope="module")
def server() -> Iterator[DialectServer]:
    with DialectServer() as running:
        yield running


@pytest.fixture
def gateway(service: GatewayService, server: DialectServer) -> Gateway:
    return service.new_project(integrations=[integration_of(FAKES[name], server.base_url(name)) for name in PLACES])


@pytest.mark.parametrize("stream", [False, True])
def test_botched_call__another_place_serves__its_answer(gateway: Gateway, server: DialectServer, stream: bool) -> None:
    server.play("google", MALFORMED_CALL)
    server.play("google_vertex", answer_with(FAKES["google_vertex"], Story(text="Fine.", pieces=1)))
    response = gateway.post({**ASK, "stream": stream})
    assert response.status_code == 200, response.text
    assert (response.headers["x-svc-provider"], response.headers["x-svc-fallback-used"]) == ("google_vertex", "true")
    assert "Fine." in response.text
    record = gateway.record(response)
    assert [attempt.provider for attempt in record.attempts] == ["google", "google", "google_vertex"]


@pytest.mark.parametrize("stream", [False, True])
def test_malformed_call__of_the_only_attempt__is_retried(gateway: Gateway, server: DialectServer, stream: bool) -> None:
    """A model that wrote a broken tool call usually gives another answer at the next try."""
    script = server.play("google", MALFORMED_CALL, answer_with(FAKES["google"], Story(text="Fine.", pieces=1)))
    response = gateway.post({**ASK, "model": "google/gemini-2.5-flash", "stream": stream})
    assert response.status_code == 200, response.text
    assert (response.headers["x-svc-provider"], response.headers["x-svc-retry-count"]) == ("google", "1")
    assert "Fine." in response.text
    assert len(script.received) == 2
    assert [attempt.error for attempt in gateway.record(response).attempts] == ["unusable", ""]


def test_botched_call__retries_switched_off__one_call(service: GatewayService, server: DialectServer) -> None:
    gateway = service.new_project(
        routing={"retry_enabled": False}, integrations=[integration_of(FAKES["google"], server.base_url("google"))]
    )
    script = server.play("google", MALFORMED_CALL)
    assert_error(gateway.post(ASK), 500, "provider_error")
    assert len(script.received) == 1


@pytest.mark.parametrize("stream", [False, True])
def test_botched_call__everywhere__an_error_with_googles_words(
    gateway: Gateway, server: DialectServer, stream: bool
) -> None:
    for name in PLACES:
        server.play(name, MALFORMED_CALL)
    message = assert_error(gateway.post({**ASK, "stream": stream}), 500, "provider_error")
    assert "MALFORMED_FUNCTION_CALL" in message
    assert "Malformed function call: f(" in message


def test_end_without_a_word__behind_thoughts__the_streams_last_event(gateway: Gateway, server: DialectServer) -> None:
    """The thoughts have been sent by then, so that no other provider can be called."""
    for name in PLACES:
        server.play(name, SILENT)
    response = gateway.post({**ASK, "stream": True})
    *chunks, error = read_stream(response.content).chunks
    assert "".join(chunk["choices"][0]["delta"].get("reasoning_content", "") for chunk in chunks) == "hm"
    assert error["error"]["code"] == "provider_error"
    assert "OTHER" in error["error"]["message"]


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("mistral-medium-3", "publishers/mistralai/models/mistral-medium-3:rawPredict"),
        ("meta/llama-3.3-70b-instruct-maas", "endpoints/openapi/chat/completions"),
    ],
)
def test_model_of_another_publisher__on_vertex__in_its_dialect(
    gateway: Gateway, server: DialectServer, model: str, path: str
) -> None:
    script = server.play("google_vertex", play.raw(200, json.dumps(play.completion()).encode()))
    response = gateway.post({**ASK, "model": f"google_vertex/{model}"})
    assert response.status_code == 200, response.text
    assert response.json() == play.completion()
    (received,) = script.received
    assert script_path(received.path) == f"/projects/fake-project/locations/europe-west4/{path}"
    assert json.loads(received.body) == {**ASK, "model": model}
