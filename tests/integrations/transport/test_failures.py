"""Tests answers that break off, are invalid, or are too large, and requests that must not be sent."""

from __future__ import annotations

import asyncio
import secrets
import socket
import traceback
from dataclasses import replace

import pytest

from integrations.providers.base import UpstreamRequest
from integrations.providers.errors import FailureKind, ProviderError
from integrations.transport.base import Timeouts, Transport
from tests.fakes.raw_server import Peer, answer, answering, answering_once, raw_server
from tests.integrations.transport.requests import LIMIT, LONG_TIMEOUTS, fetch, post
from tests.tables.cases import tabled
from tests.waiting import eventually

CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


async def _failure(transport: Transport, url: str) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await fetch(transport, url)
    return caught.value


async def test_connect__refused__is_unavailable(transport: Transport) -> None:
    # The socket is bound, so that no other process gets the port, and does not listen.
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        error = await _failure(transport, f"http://127.0.0.1:{taken.getsockname()[1]}/v1?key=secret")
    assert (error.kind, error.message) == (FailureKind.UNAVAILABLE, "No connection to 127.0.0.1")


async def test_connect__name_unknown__is_unavailable(transport: Transport) -> None:
    error = await _failure(transport, "http://no-such-host.invalid/")
    assert (error.kind, error.message) == (FailureKind.UNAVAILABLE, "No connection to no-such-host.invalid")


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n", b"hello"], id="length not reached"),
        pytest.param([CHUNKED + b"5\r\nhello\r\n"], id="no last chunk"),
        pytest.param([CHUNKED + b"50\r\nhello"], id="inside a chunk"),
    ],
)
async def test_body__cut_short__is_unavailable_after_what_arrived(transport: Transport, pieces: list[bytes]) -> None:
    async with raw_server(answering_once(*pieces)) as server:
        response = await transport.send(post(server.url), LONG_TIMEOUTS)
        received = []
        with pytest.raises(ProviderError) as caught:
            async for piece in response.chunks():
                received.append(piece)
        response.close()
        assert caught.value.kind is FailureKind.UNAVAILABLE
        assert b"".join(received) in (b"hello", b"")  # aiohttp drops data that came in the same read as the error.


@pytest.mark.parametrize(
    ("end", "timeouts", "kinds"),
    [
        ("reset", LONG_TIMEOUTS, {FailureKind.UNAVAILABLE}),
        # aiohttp does not report a broken framing to the reader, so the idle timeout has to end the read.
        ("bad chunk", replace(LONG_TIMEOUTS, idle=0.2), {FailureKind.UNAVAILABLE, FailureKind.TIMEOUT}),
    ],
)
async def test_body__broken__fails(transport: Transport, end: str, timeouts: Timeouts, kinds: set[FailureKind]) -> None:
    async def script(peer: Peer) -> None:
        await peer.read_request()
        await peer.send(CHUNKED + b"5\r\nhello\r\n")
        await proceed.wait()
        if end == "reset":
            peer.reset()
        else:
            await peer.send(b"zz\r\n")
            await peer.hung_up()

    proceed = asyncio.Event()
    async with raw_server(script) as server:
        response = await transport.send(post(server.url), timeouts)
        proceed.set()
        with pytest.raises(ProviderError) as caught:
            await response.read(limit=LIMIT)
        response.close()
    assert caught.value.kind in kinds


async def test_answer__half_closed_before_it__is_unavailable(transport: Transport) -> None:
    async def script(peer: Peer) -> None:
        await peer.read_request()
        peer.half_close()
        await peer.hung_up()

    async with raw_server(script) as server:
        assert (await _failure(transport, server.url)).kind is FailureKind.UNAVAILABLE


async def test_answer__half_closed_after_it__is_whole(transport: Transport) -> None:
    async def script(peer: Peer) -> None:
        await peer.read_request()
        await peer.send(b"HTTP/1.1 200 OK\r\n\r\nhello")
        peer.half_close()
        await peer.hung_up()

    async with raw_server(script) as server:
        assert await fetch(transport, server.url) == b"hello"


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(b"SSH-2.0-OpenSSH_9.6\r\n\r\n", id="another protocol"),
        pytest.param(b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", id="bad header"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: ten\r\n\r\n", id="bad length"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab", id="two lengths"),
    ],
)
async def test_head__malformed__is_unusable(transport: Transport, head: bytes) -> None:
    async with raw_server(answering_once(head)) as server:
        assert (await _failure(transport, server.url)).kind is FailureKind.UNUSABLE


@pytest.mark.parametrize(
    "flood",
    [
        pytest.param([b"HTTP/1.1 200 OK\r\nx-long: " + b"a" * (1 << 20)], id="one long header"),
        pytest.param([b"HTTP/1.1 200 OK\r\n"] + [b"x: y\r\n" * 4096] * 40, id="many headers"),
    ],
)
async def test_head__endless__is_unusable(transport: Transport, flood: list[bytes]) -> None:
    async def script(peer: Peer) -> None:
        await peer.read_request()
        await peer.send(*flood)
        await peer.hung_up()

    async with raw_server(script) as server:
        assert (await _failure(transport, server.url)).kind is FailureKind.UNUSABLE


@pytest.mark.parametrize(
    "head",
    [b"HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n"],
    ids=["announced", "unannounced"],
)
async def test_read__above_its_limit__is_unusable_and_hangs_up(transport: Transport, head: bytes) -> None:
    async def script(peer: Peer) -> None:
        await peer.read_request()
        await peer.send(head, bytes(4000))
        await peer.hung_up()

    async with raw_server(script) as server:
        response = await transport.send(post(server.url), LONG_TIMEOUTS)
        with pytest.raises(ProviderError) as caught:
            await response.read(limit=1000)
        assert caught.value.kind is FailureKind.UNUSABLE
        await eventually(server.peers[0].gone.is_set)


async def test_read__at_its_limit__is_whole(transport: Transport) -> None:
    async with raw_server(answering(answer(bytes(1000)))) as server:
        response = await transport.send(post(server.url), LONG_TIMEOUTS)
        assert await response.read(limit=1000) == bytes(1000)
        response.close()


@tabled
async def test_url__not_allowed__is_refused_unsent(transport: Transport, url: str) -> None:
    with pytest.raises(ProviderError) as caught:
        await transport.send(post(url), LONG_TIMEOUTS)
    assert caught.value.kind is FailureKind.CREDENTIALS


@tabled
async def test_header__not_allowed__is_refused_unsent(transport: Transport, name: str, value: str) -> None:
    with pytest.raises(ProviderError) as caught:
        await transport.send(post("http://127.0.0.1:1/", headers={name: value}), LONG_TIMEOUTS)
    assert caught.value.kind is FailureKind.CREDENTIALS
    assert value not in caught.value.message


@pytest.mark.parametrize("method", ["GET\r\nx: y", "get", "HEAD", ""])
async def test_method__not_supported__is_refused_unsent(transport: Transport, method: str) -> None:
    with pytest.raises(ProviderError) as caught:
        await transport.send(UpstreamRequest(method, "http://127.0.0.1:1/", {}, b""), LONG_TIMEOUTS)
    assert caught.value.kind is FailureKind.CREDENTIALS


@pytest.mark.parametrize("reply", [b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx", b""])
async def test_failure__of_a_url_with_a_key__shows_only_the_host(transport: Transport, reply: bytes) -> None:
    key = secrets.token_hex(8)  # The key is no literal, since a traceback also prints source lines.
    query = f"/v1/path?key={key}"
    async with raw_server(answering_once(reply)) as server:
        with pytest.raises(ProviderError) as caught:
            await fetch(transport, server.url + query)
    assert "127.0.0.1" in caught.value.message
    printed = "".join(traceback.format_exception(caught.value))
    assert key not in printed
