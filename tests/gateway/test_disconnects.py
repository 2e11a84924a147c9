"""A client that leaves at any moment: the provider's call ends, and one record has the outcome `cancelled`."""

from __future__ import annotations

import json
import random
import socket
import time
from collections.abc import Callable

import pytest

from analytics.contracts import Outcome
from tests.fakes import scripted as play
from tests.gateway.conftest import Scripted
from tests.gateway.service import Gateway
from tests.gateway.wire import ENDPOINT, body
from tests.waiting import TIMEOUT_SECONDS

POINTS = 20


def send_request(gateway: Gateway, *, stream: bool) -> socket.socket:
    content = json.dumps(body(stream=stream)).encode()
    connection = socket.create_connection(("127.0.0.1", gateway.port), timeout=TIMEOUT_SECONDS)
    head = f"POST {ENDPOINT} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {gateway.key}\r\n"
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


def outcomes(gateway: Gateway, count: int) -> list[str]:
    """Returns the outcomes of all the project's records, once there are `count`."""

    def found() -> list[str]:
        entries = gateway.service.spooled.entries()
        return [entry.record.outcome.value for entry in entries if entry.record.project_id == gateway.project_id]

    return gateway.service.until(found, lambda records: len(records) >= count)


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
    (record,) = [
        entry.record for entry in gateway.service.spooled.entries() if entry.record.project_id == gateway.project_id
    ]
    assert record.tokens_estimated
    assert record.status_code == 499
    assert 25 <= record.completion_tokens <= 200


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
