"""Unusual answers of providers, some valid and some not, and unusual but valid requests of clients."""

from __future__ import annotations

import gzip
import json
import socket

import pytest

from tests.fakes import scripted as play
from tests.fakes.upstream import Connection, Received, head
from tests.gateway.conftest import Scripted
from tests.gateway.wire import ENDPOINT, assert_closing_chunk, assert_error, body, read_stream
from tests.waiting import TIMEOUT_SECONDS

STREAM = body(stream=True)
ANSWER = json.dumps(play.completion()).encode()


async def without_length(request: Received, connection: Connection) -> None:
    """Answers as HTTP/1.0 does: the end of the connection is the end of the body."""
    await connection.send(head(200, {"content-type": "application/json"}) + ANSWER)
    connection.hang_up()


async def chunked_with_extensions_and_trailers(request: Received, connection: Connection) -> None:
    await connection.send(head(200, {"content-type": "application/json", "transfer-encoding": "chunked"}))
    half = len(ANSWER) // 2
    for piece in (ANSWER[:half], ANSWER[half:]):
        await connection.send(b"%X;name=value\r\n%b\r\n" % (len(piece), piece))
    await connection.send(b"0\r\nx-trailer: 1\r\n\r\n")


async def shorter_than_announced(request: Received, connection: Connection) -> None:
    await connection.send(head(200, {"content-length": str(len(ANSWER) + 10)}) + ANSWER)
    connection.hang_up()


async def early_hints(request: Received, connection: Connection) -> None:
    await connection.send(b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n")
    await connection.send_whole(200, ANSWER)


async def folded_and_repeated_headers(request: Received, connection: Connection) -> None:
    lines = b"HTTP/1.1 200 OK\r\nset-cookie: a=1\r\nset-cookie: b=2\r\nContent-Length: %d\r\n\r\n" % len(ANSWER)
    await connection.send(lines + ANSWER)


@pytest.mark.parametrize(
    "step", [without_length, chunked_with_extensions_and_trailers, early_hints, folded_and_repeated_headers]
)
def test_answer__unusual_but_right__is_served(scripted: Scripted, step: play.Step) -> None:
    gateway, _ = scripted(step)

    for _ in range(3):
        response = gateway.post(body())

        assert response.status_code == 200, response.text
        assert response.json() == play.completion()


def test_answer__shorter_than_announced__is_an_error(scripted: Scripted) -> None:
    gateway, _ = scripted(shorter_than_announced)

    assert_error(gateway.post(body()), 503, "provider_unavailable")


def test_answer__compressed_without_being_requested__is_read(scripted: Scripted) -> None:
    gateway, script = scripted(play.raw(200, gzip.compress(ANSWER), {"content-encoding": "gzip"}))

    response = gateway.post(body())

    assert response.status_code == 200, response.text
    assert response.json() == play.completion()
    assert script.received[-1].headers["accept-encoding"] == "identity"


def test_answer__of_a_compression_that_nobody_reads__is_named_without_its_bytes(scripted: Scripted) -> None:
    gateway, _ = scripted(play.raw(200, b"\x1f\x9dcanary", {"content-encoding": "compress"}))

    message = assert_error(gateway.post(body()), 500, "provider_error")

    assert "compressed with compress, which the gateway does not read" in message
    assert "canary" not in message


def test_answer__of_5_mb__is_served_whole(scripted: Scripted) -> None:
    text = "x" * 5_000_000
    gateway, _ = scripted(play.raw(200, json.dumps(play.completion(text)).encode()))

    assert gateway.post(body()).json()["choices"][0]["message"]["content"] == text


def test_event__of_1_mb__is_relayed(scripted: Scripted) -> None:
    text = "é" * 500_000
    gateway, _ = scripted(
        play.stream(play.ROLE, play.chunk({"content": text}), play.FINISH, play.USAGE_CHUNK, play.DONE)
    )

    stream = read_stream(gateway.post(STREAM).content)

    assert stream.text == text
    assert_closing_chunk(stream)


def test_events__10000_at_once__all_arrive(scripted: Scripted) -> None:
    events = b"".join([play.ROLE, *[play.chunk({"content": "w "})] * 10_000, play.FINISH, play.USAGE_CHUNK, play.DONE])
    gateway, _ = scripted(play.stream(events))

    assert read_stream(gateway.post(STREAM).content).text == "w " * 10_000


def test_connections__to_the_provider__are_reused(scripted: Scripted) -> None:
    gateway, script = scripted(play.answer())
    before = gateway.upstream.connections

    for turn in range(20):
        assert gateway.post(body(stream=turn % 2 == 0)).status_code == 200

    assert len(script.received) == 20
    assert gateway.upstream.connections - before <= 3


def test_connection__closed_by_the_provider_while_idle__costs_no_request(scripted: Scripted) -> None:
    async def answer_and_close(request: Received, connection: Connection) -> None:
        await connection.send_whole(200, ANSWER)
        connection.hang_up()

    gateway, _ = scripted(answer_and_close)

    assert [gateway.post(body()).status_code for _ in range(10)] == [200] * 10


def test_client__pipelines_two_requests__gets_two_answers(scripted: Scripted) -> None:
    gateway, _ = scripted(play.answer("one"), play.answer("two"))
    content = json.dumps(body()).encode()
    head_of_one = f"POST {ENDPOINT} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {gateway.key}\r\n"
    one = f"{head_of_one}content-length: {len(content)}\r\n\r\n".encode() + content
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=TIMEOUT_SECONDS) as connection:
        connection.sendall(one * 2)
        answer = b""
        while answer.count(b'"usage"') < 2:
            answer += connection.recv(65536)

    assert answer.count(b"HTTP/1.1 200") == 2
    assert answer.index(b"one") < answer.index(b"two")


def test_client__expects_continue__gets_it(scripted: Scripted) -> None:
    gateway, _ = scripted(play.answer("one"))
    content = json.dumps(body()).encode()
    request = (
        f"POST {ENDPOINT} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {gateway.key}\r\n"
        f"content-length: {len(content)}\r\nexpect: 100-continue\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=TIMEOUT_SECONDS) as connection:
        connection.sendall(request.encode())
        assert connection.recv(1024).startswith(b"HTTP/1.1 100")
        connection.sendall(content)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")


def test_client__speaks_http_1_0__gets_the_answer_and_the_end(scripted: Scripted) -> None:
    gateway, _ = scripted(play.answer("one two"))
    for stream in (False, True):
        content = json.dumps(body(stream=stream)).encode()
        request = (
            f"POST {ENDPOINT} HTTP/1.0\r\nauthorization: Bearer {gateway.key}\r\ncontent-length: {len(content)}\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", gateway.port), timeout=TIMEOUT_SECONDS) as connection:
            connection.sendall(request.encode() + content)
            answer = b"".join(iter(lambda: connection.recv(65536), b""))

        assert b" 200 " in answer.split(b"\r\n", 1)[0]
        assert b"[DONE]" in answer if stream else b"one two" in answer
