"""A client that leaves at any moment: the provider's call ends, and one record has the outcome `cancelled`."""

from __future__ import annotations

import contextlib
import json
import random
import select
import socket
import time
from collections.abc import Callable
from typing import Any

import pytest

from analytics.request_log.record import Outcome, RequestRecord
from tests.fakes import scripted as play
from tests.gateway.conftest import Routed, Scripted
from tests.gateway.service import PRICED_MODEL, Gateway, GatewayService
from tests.gateway.surfaces.ways import BY_BODY, PATHS, WHOLE_AND_STREAMED, Way
from tests.gateway.wire import ENDPOINT, body
from tests.waiting import TIMEOUT_SECONDS

POINTS = 20


def send_request(
    gateway: Gateway, *, stream: bool, path: str = ENDPOINT, sent: dict[str, Any] | None = None, session: str = ""
) -> socket.socket:
    content = json.dumps({**(sent or body()), "stream": stream}).encode()
    connection = socket.create_connection(("127.0.0.1", gateway.port), timeout=TIMEOUT_SECONDS)
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {gateway.key}\r\n"
    head += f"x-svc-session-id: {session}\r\n" if session else ""
    connection.sendall(f"{head}content-length: {len(content)}\r\n\r\n".encode() + content)
    return connection


def read_for(connection: socket.socket, seconds: float) -> bytes:
    """Returns the bytes that arrive within the time."""
    answer, deadline = b"", time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        connection.settimeout(left)
        try:
            piece = connection.recv(65536)
        except TimeoutError:
            break
        answer += piece
    return answer


def read_until(connection: socket.socket, enough: Callable[[bytes], bool]) -> None:
    answer = b""
    while not enough(answer):
        piece = connection.recv(65536)
        assert piece, answer
        answer += piece


def records(gateway: Gateway, count: int) -> list[RequestRecord]:
    """Returns all the project's records, once there are `count`."""

    def found() -> list[RequestRecord]:
        entries = gateway.service.spooled.entries()
        return [entry.record for entry in entries if entry.record.project_id == gateway.project_id]

    return gateway.service.until(found, lambda records: len(records) >= count)


def outcomes(gateway: Gateway, count: int) -> list[str]:
    return [record.outcome.value for record in records(gateway, count)]


@pytest.mark.parametrize("point", range(POINTS))
def test_client__leaves_a_stream_at_a_random_point__is_cancelled_once(scripted: Scripted, point: int) -> None:
    gateway, script = scripted(play.endless())
    connection = send_request(gateway, stream=True)
    script.wait_for(1)

    read_for(connection, random.Random(point).uniform(0, 0.6))
    connection.close()

    (received,) = script.received
    assert received.gone.wait(TIMEOUT_SECONDS)
    assert outcomes(gateway, 1) == [Outcome.CANCELLED]


@pytest.mark.parametrize("point", range(POINTS))
def test_client__leaves_while_waiting_for_a_whole_answer__is_cancelled_once(scripted: Scripted, point: int) -> None:
    gateway, script = scripted(play.hang)
    connection = send_request(gateway, stream=False)
    script.wait_for(1)

    read_for(connection, random.Random(100 + point).uniform(0, 0.6))
    connection.close()

    (received,) = script.received
    assert received.gone.wait(TIMEOUT_SECONDS)
    assert outcomes(gateway, 1) == [Outcome.CANCELLED]


def test_client__leaves_before_the_first_output_of_a_stream__is_cancelled_once(scripted: Scripted) -> None:
    gateway, script = scripted(play.stream(play.ROLE, end="hang"))
    connection = send_request(gateway, stream=True)
    script.wait_for(1)

    connection.close()

    assert script.received[0].gone.wait(TIMEOUT_SECONDS)
    assert outcomes(gateway, 1) == [Outcome.CANCELLED]


def test_client__stops_reading__stops_the_provider_too_and_can_still_leave(scripted: Scripted) -> None:
    gateway, script = scripted(play.stream(*[play.chunk({"content": "x" * 60_000})] * 2000, play.DONE))
    connection = send_request(gateway, stream=True)
    script.wait_for(1)
    read_for(connection, 0.2)

    connection.close()

    assert script.received[0].gone.wait(TIMEOUT_SECONDS)
    assert outcomes(gateway, 1) == [Outcome.CANCELLED]


def test_cancelled_stream__counts_what_was_delivered(scripted: Scripted) -> None:
    gateway, _ = scripted(play.stream(play.ROLE, *[play.chunk({"content": "word "})] * 50, end="hang"))
    connection = send_request(gateway, stream=True)
    read_until(connection, lambda answer: answer.count(b'"word "') == 50)
    connection.close()

    assert outcomes(gateway, 1) == [Outcome.CANCELLED]
    (record,) = records(gateway, 1)
    assert record.tokens_estimated
    assert record.status_code == 499
    assert 25 <= record.completion_tokens <= 200


@WHOLE_AND_STREAMED
@pytest.mark.parametrize("way", BY_BODY)
def test_client__leaves_before_the_first_output__costs_the_estimated_prompt(
    routed: Routed, way: Way, stream: bool
) -> None:
    gateway, scripts = routed(**{way.provider: [play.hang]})
    asked = way.body("word " * 400)
    path = f"/api/gateway/v1/{PATHS[way.surface]}"
    connection = send_request(gateway, stream=stream, path=path, sent=asked)
    scripts[way.provider].wait_for(1)

    connection.close()

    (record,) = records(gateway, 1)
    assert record.outcome is Outcome.CANCELLED
    assert record.tokens_estimated
    assert 400 <= record.prompt_tokens <= 800
    assert record.completion_tokens == 0
    assert [attempt.prompt_tokens for attempt in record.attempts] == [record.prompt_tokens]


@WHOLE_AND_STREAMED
def test_client__leaves_before_the_first_output_over_and_over__uses_up_a_budget(
    scripted: Scripted, stream: bool
) -> None:
    gateway, _ = scripted(play.hang)
    gateway.service.set_routing(gateway.project_id, session_budget_usd="0.01")
    asked = body(model=f"openai/{PRICED_MODEL}", max_tokens=1, messages=[{"role": "user", "content": "word " * 20_000}])

    def leave() -> list[RequestRecord]:
        known = len(gateway.upstream.received)
        with send_request(gateway, stream=stream, sent=asked, session="one") as connection:
            gateway.service.until(
                lambda: len(gateway.upstream.received) > known or _has_answer(connection), lambda done: done
            )
        return [record for record in records(gateway, 1) if record.status_code == 429]

    (refused, *_) = gateway.service.until(leave, bool)

    assert refused.error_code == "session_budget_exceeded"
    assert refused.prompt_tokens == 0


def _has_answer(connection: socket.socket) -> bool:
    return bool(select.select([connection], [], [], 0)[0])


@WHOLE_AND_STREAMED
def test_client__leaves_while_no_provider_has_the_request__costs_nothing(service: GatewayService, stream: bool) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, contextlib.ExitStack() as stack:
        for _ in range(4):
            # The server accepts nobody: a further connection waits.
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        url = f"http://127.0.0.1:{full.getsockname()[1]}/v1"
        gateway = service.new_project(base_urls={"openai": url})
        connection = send_request(gateway, stream=stream)
        gateway.service.until(lambda: gateway.client.get("/healthz").json()["in_flight"], bool)

        connection.close()

        (record,) = records(gateway, 1)
    assert record.outcome is Outcome.CANCELLED
    assert (record.prompt_tokens, record.completion_tokens, record.tokens_estimated) == (0, 0, False)


def test_client__leaves_after_the_last_byte__is_a_success(scripted: Scripted) -> None:
    gateway, _ = scripted(play.answer())
    for stream in (True, False):
        with send_request(gateway, stream=stream) as connection:
            read_until(connection, lambda answer: b"[DONE]" in answer or b'"usage"' in answer)

    assert outcomes(gateway, 2) == [Outcome.SUCCESS, Outcome.SUCCESS]


def test_worker__after_many_departures__keeps_nothing_in_flight(scripted: Scripted) -> None:
    gateway, script = scripted(play.endless())
    connections = [send_request(gateway, stream=True) for _ in range(30)]
    script.wait_for(30)
    for connection in connections:
        connection.close()

    health = gateway.service.until(lambda: gateway.client.get("/healthz").json(), lambda found: found["in_flight"] == 0)

    assert health == {"status": "ok", "in_flight": 0}
    assert outcomes(gateway, 30) == [Outcome.CANCELLED] * 30
