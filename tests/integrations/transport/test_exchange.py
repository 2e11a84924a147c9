"""Tests requests and answers on the wire: heads, every framing of a body, and no hidden changes."""

from __future__ import annotations

import pytest

from integrations.transport.base import Transport
from tests.fakes.raw_server import Peer, Received, answer, answering, answering_once, raw_server
from tests.integrations.transport.requests import LONG_TIMEOUTS, fetch, post


async def test_request__sent__arrives_as_it_was_given(transport: Transport) -> None:
    seen: list[Received] = []

    async def script(peer: Peer) -> None:
        seen.append(await peer.read_request())
        await peer.send(answer())

    async with raw_server(script) as server:
        url = f"{server.url}/v1/models/a%2Fb:run?key=s%20t&alt=sse"
        request = post(url, '{"x":"é"}'.encode(), {"content-type": "application/json", "authorization": "Bearer k"})
        (await transport.send(request, LONG_TIMEOUTS)).close()
        assert seen[0].line == "POST /v1/models/a%2Fb:run?key=s%20t&alt=sse HTTP/1.1"
        assert seen[0].body == '{"x":"é"}'.encode()
        assert seen[0].headers == {
            "host": f"127.0.0.1:{server.port}",
            "accept": "*/*",
            "accept-encoding": "identity",
            "user-agent": "prompt-gateway",
            "content-type": "application/json",
            "authorization": "Bearer k",
            "content-length": "10",
        }


async def test_request__framing_headers_given__are_the_transports_own(transport: Transport) -> None:
    seen: list[Received] = []

    async def script(peer: Peer) -> None:
        seen.append(await peer.read_request())
        await peer.send(answer())

    async with raw_server(script) as server:
        given = {
            "content-length": "99",
            "transfer-encoding": "chunked",
            "connection": "close",
            "accept-encoding": "gzip",
        }
        (await transport.send(post(server.url, b"12345", given), LONG_TIMEOUTS)).close()
    assert seen[0].headers["content-length"] == "5"
    assert seen[0].headers["accept-encoding"] == "identity"
    assert "transfer-encoding" not in seen[0].headers


async def test_request__four_megabytes__arrive_whole(transport: Transport) -> None:
    body = bytes(range(256)) * 16384

    async def script(peer: Peer) -> None:
        request = await peer.read_request()
        await peer.send(answer(b"same" if request.body == body else b"different"))

    async with raw_server(script) as server:
        assert await fetch(transport, server.url, body) == b"same"


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        pytest.param([answer(b"hello")], b"hello", id="content length"),
        pytest.param([answer(b"")], b"", id="length zero"),
        pytest.param([b"HTTP/1.1 204 No Content\r\n\r\n"], b"", id="no content"),
        pytest.param(
            [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n", b"2;x=y\r\nde\r\n", b"0\r\n\r\n"],
            b"abcde",
            id="chunked",
        ),
        pytest.param(
            [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nx-sum: 1\r\n\r\n"],
            b"abc",
            id="chunked with trailer",
        ),
        pytest.param([b"HTTP/1.1 100 Continue\r\n\r\n", answer(b"after")], b"after", id="100 apart"),
        pytest.param(
            [b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + answer(b"after")], b"after", id="103 in one read"
        ),
        pytest.param(
            [b"HTTP/1.1 200 OK\r\nconnection: Upgrade\r\nupgrade: h2,h2c\r\ncontent-length: 2\r\n\r\nok"],
            b"ok",
            id="upgrade offered",
        ),
    ],
)
async def test_body__framed_by_the_message__is_read_and_the_connection_kept(
    transport: Transport, pieces: list[bytes], expected: bytes
) -> None:
    async with raw_server(answering(*pieces)) as server:
        assert await fetch(transport, server.url) == expected
        assert await fetch(transport, server.url) == expected
        assert server.connections == 1


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([b"HTTP/1.1 200 OK\r\n\r\n", b"he", b"llo"], id="HTTP/1.1 until close"),
        pytest.param([b"HTTP/1.0 200 OK\r\n\r\n", b"hello"], id="HTTP/1.0 until close"),
        pytest.param([b"HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\nhello"], id="HTTP/1.0 with length"),
        pytest.param([answer(head=b"connection: close\r\n")], id="connection close"),
    ],
)
async def test_body__framed_by_the_connection__is_read_and_a_new_one_made(
    transport: Transport, pieces: list[bytes]
) -> None:
    async with raw_server(answering_once(*pieces)) as server:
        assert await fetch(transport, server.url) == b"hello"
        assert await fetch(transport, server.url) == b"hello"
        assert server.connections == 2


async def test_chunks__of_a_stream__come_as_they_arrive_and_none_is_empty(transport: Transport) -> None:
    async def script(peer: Peer) -> None:
        await peer.read_request()
        await peer.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        for word in (b"one", b"two", b"three"):
            await peer.send(b"%x\r\n%b\r\n" % (len(word), word))
            await peer.reader.readexactly(1)  # The test acknowledges each chunk below.
        await peer.send(b"0\r\n\r\n")

    async with raw_server(script) as server:
        response = await transport.send(post(server.url), LONG_TIMEOUTS)
        received = []
        async for piece in response.chunks():
            received.append(piece)
            server.peers[0].reader.feed_data(b"!")
        response.close()
    assert received == [b"one", b"two", b"three"]


async def test_headers__repeated_and_mixed_case__are_lower_case_and_the_last_counts(transport: Transport) -> None:
    head = b"X-Request-ID: a\r\nx-request-id:  b \r\nX-Empty:\r\nRetry-After: 3\r\n"
    async with raw_server(answering(answer(head=head))) as server:
        response = await transport.send(post(server.url), LONG_TIMEOUTS)
        response.close()
    assert response.status == 200
    assert response.headers["x-request-id"] == "b"
    assert response.headers["x-empty"] == ""
    assert response.headers["retry-after"] == "3"


async def test_status__of_an_error__is_an_answer_like_any_other(transport: Transport) -> None:
    async with raw_server(answering(b"HTTP/1.1 529 \r\ncontent-length: 2\r\n\r\nno")) as server:
        response = await transport.send(post(server.url), LONG_TIMEOUTS)
        assert (response.status, await response.read(limit=10)) == (529, b"no")
        response.close()


async def test_redirect__is_not_followed(transport: Transport) -> None:
    moved = b"HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n"
    async with raw_server(answering(moved)) as server:
        response = await transport.send(post(server.url), LONG_TIMEOUTS)
        response.close()
    assert (response.status, response.headers["location"]) == (302, "/elsewhere")


async def test_cookie__set_by_the_server__is_not_sent_back(transport: Transport) -> None:
    seen: list[Received] = []

    async def script(peer: Peer) -> None:
        while True:
            seen.append(await peer.read_request())
            await peer.send(answer(head=b"set-cookie: a=b; path=/\r\n"))

    async with raw_server(script) as server:
        await fetch(transport, server.url)
        await fetch(transport, server.url)
    assert ["cookie" in request.headers for request in seen] == [False, False]
