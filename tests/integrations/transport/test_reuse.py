"""Tests the choice of the connection for a request, and the cases in which a connection must not be used again."""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import closing

import pytest

from integrations.providers.errors import FailureKind, ProviderError
from integrations.transport.base import Transport
from integrations.transport.pool import PooledTransport
from tests.fakes.raw_server import Peer, answer, answering, raw_server
from tests.integrations.transport.conftest import NewTransport
from tests.integrations.transport.requests import LIMIT, LONG_TIMEOUTS, fetch, post
from tests.waiting import TIMEOUT_SECONDS, eventually


async def test_connections__one_after_the_other__are_one(transport: Transport) -> None:
    async with raw_server(answering(answer())) as server:
        for _ in range(10):
            assert await fetch(transport, server.url) == b"hello"
        assert server.connections == 1


async def test_connections__of_parallel_requests__are_reused_afterwards(transport: Transport) -> None:
    async with raw_server(answering(answer())) as server:
        await asyncio.gather(*(fetch(transport, server.url) for _ in range(8)))
        opened = server.connections
        await asyncio.gather(*(fetch(transport, server.url) for _ in range(opened)))
        assert server.connections == opened


async def accepted(listener: socket.socket) -> socket.socket:
    """Returns the server's end of a new connection, whose first request has been answered."""
    connected, _ = await asyncio.to_thread(listener.accept)
    connected.settimeout(TIMEOUT_SECONDS)

    def serve() -> None:
        while b"{}" not in connected.recv(65536, socket.MSG_PEEK):
            continue
        connected.recv(65536)
        connected.sendall(answer())

    await asyncio.to_thread(serve)
    return connected


def end(peer: socket.socket, ending: str) -> None:
    """Closes the peer's end like the system does: the other end's unread data has arrived when this returns."""
    if ending == "half_close":
        peer.shutdown(socket.SHUT_WR)
    else:
        if ending == "reset":
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()


async def test_connection__idle_too_long__is_closed(new_transport: NewTransport) -> None:
    transport = new_transport(keep_alive=0.05)
    async with raw_server(answering(answer())) as server:
        await fetch(transport, server.url)
        await eventually(server.peers[0].gone.is_set)
        await fetch(transport, server.url)
        assert server.connections == 2
        await transport.close()


async def test_connection__closed_by_the_peer_while_idle__is_replaced(transport: Transport) -> None:
    async def script(peer: Peer) -> None:
        await peer.read_request()
        await peer.send(answer())

    async with raw_server(script) as server:
        for _ in range(3):
            assert await fetch(transport, server.url) == b"hello"
            await server.peers[-1].ended.wait()
        assert server.connections == 3


@pytest.mark.parametrize("ending", ["close", "reset"])
async def test_connection__ended_after_the_request_was_sent__is_unavailable_and_nothing_is_sent_again(
    transport: Transport, ending: str
) -> None:
    received = []

    async def script(peer: Peer) -> None:
        await peer.read_request()
        await peer.send(answer())
        received.append(await peer.read_request())
        peer.reset() if ending == "reset" else peer.close()

    async with raw_server(script) as server:
        assert await fetch(transport, server.url) == b"hello"
        with pytest.raises(ProviderError) as caught:
            await fetch(transport, server.url)
        assert caught.value.kind is FailureKind.UNAVAILABLE
        assert (server.connections, len(received)) == (1, 1)


@pytest.mark.parametrize("ending", ["close", "half_close", "reset"])
async def test_connection__ended_before_the_loop_notices__is_detected_and_replaced(
    transport: Transport, ending: str
) -> None:
    """The end of the connection has reached the system's buffers before the next request, without a turn of the event
    loop in between."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        listener.settimeout(TIMEOUT_SECONDS)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        first = asyncio.create_task(fetch(transport, url))
        peer = await accepted(listener)
        await first

        end(peer, ending)
        second = asyncio.create_task(fetch(transport, url))
        other = await accepted(listener)

        assert await second == b"hello"
        other.close()
        peer.close()


async def test_connection__new_and_closed_without_answer__is_not_tried_again(transport: Transport) -> None:
    async def script(peer: Peer) -> None:
        await peer.read_request()

    async with raw_server(script) as server:
        with pytest.raises(ProviderError) as caught:
            await fetch(transport, server.url)
        assert caught.value.kind is FailureKind.UNAVAILABLE
        assert server.connections == 1


async def test_connection__reused_and_broken_inside_the_head__is_not_tried_again(transport: Transport) -> None:
    async def script(peer: Peer) -> None:
        await peer.read_request()
        await peer.send(answer())
        await peer.read_request()
        await peer.send(b"HTTP/1.1 200 OK\r\nx-half: ")

    async with raw_server(script) as server:
        await fetch(transport, server.url)
        with pytest.raises(ProviderError) as caught:
            await fetch(transport, server.url)
        assert caught.value.kind is FailureKind.UNAVAILABLE
        assert server.connections == 1


@pytest.mark.parametrize("surplus", [b"garbage", answer(b"a second answer")], ids=["garbage", "answer"])
async def test_connection__with_bytes_after_the_answer__is_not_used_again(transport: Transport, surplus: bytes) -> None:
    async with raw_server(answering(answer() + surplus)) as server:
        for _ in range(2):
            try:
                assert await fetch(transport, server.url) == b"hello"
            except ProviderError as error:  # aiohttp fails the answer too when bytes behind it are not HTTP.
                assert error.kind is FailureKind.UNUSABLE
        assert server.connections == 2


async def test_pooled_connection__with_bytes_while_idle__is_closed() -> None:
    # Only the pool is tested: aiohttp takes such bytes for the next request's answer, one reason why it is not the
    # default.
    transport = PooledTransport()
    async with raw_server(answering(answer())) as server:
        assert await fetch(transport, server.url) == b"hello"
        await server.peers[0].send(answer(b"unasked"))
        await eventually(server.peers[0].gone.is_set)
        assert await fetch(transport, server.url) == b"hello"
        assert server.connections == 2
        await transport.close()


async def test_response__closed_before_its_end__drops_the_connection(transport: Transport) -> None:
    async def script(peer: Peer) -> None:
        await peer.read_request()
        await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello")
        await peer.hung_up()

    async with raw_server(script) as server:
        response = await transport.send(post(server.url), LONG_TIMEOUTS)
        response.close()
        response.close()
        await eventually(server.peers[0].gone.is_set)
        with pytest.raises(ProviderError):
            await response.read(limit=LIMIT)


async def test_response__before_the_request_is_fully_sent__is_delivered_and_the_connection_dropped(
    transport: Transport,
) -> None:
    async def script(peer: Peer) -> None:
        await peer.read_head()
        if peer.number == 1:
            await peer.send(b"HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nbig")
            # The server reads nothing more and keeps the connection open.
            await asyncio.get_running_loop().create_future()
        await peer.send(answer())

    async with raw_server(script) as server:
        response = await transport.send(post(server.url, bytes(24 * 1024 * 1024)), LONG_TIMEOUTS)
        assert (response.status, await response.read(limit=10)) == (413, b"big")
        response.close()
        assert await fetch(transport, server.url) == b"hello"
        assert server.connections == 2


@pytest.mark.parametrize("promise", [b"timeout=1", b"max=5, timeout=1"])
async def test_connection__the_peer_keeps_for_a_second__is_given_up_before(
    new_transport: NewTransport, promise: bytes
) -> None:
    transport = new_transport()
    async with raw_server(answering(answer(head=b"Keep-Alive: " + promise + b"\r\n"))) as server:
        await fetch(transport, server.url)
        await fetch(transport, server.url)
        await eventually(server.peers[-1].gone.is_set)
        await transport.close()


async def test_pooled_connection__the_peer_was_seen_to_end_when_idle__is_given_up_before() -> None:
    transport = PooledTransport(keep_alive=3600.0)
    is_to_end = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.read_request()
        await peer.send(answer())
        await (is_to_end.wait() if peer.number == 1 else peer.hung_up())

    async with raw_server(script) as server:
        await fetch(transport, server.url)
        is_to_end.set()
        await server.peers[0].ended.wait()
        await fetch(transport, server.url)
        await eventually(server.peers[1].gone.is_set)
        await transport.close()


async def test_transport__closed__refuses_and_hangs_up(new_transport: NewTransport) -> None:
    transport = new_transport()
    async with raw_server(answering(answer())) as server:
        await fetch(transport, server.url)
        await transport.close()
        await eventually(server.peers[0].gone.is_set)
        with pytest.raises(ProviderError) as caught:
            await fetch(transport, server.url)
        assert caught.value.kind is FailureKind.UNAVAILABLE
