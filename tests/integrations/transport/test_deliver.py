"""Tests the delivery of a body to a function, as streams are relayed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from integrations.providers.errors import FailureKind, ProviderError
from integrations.transport.base import Transport
from tests.fakes.raw_server import Peer, answer, answering, answering_once, raw_server
from tests.integrations.transport.requests import LONG_TIMEOUTS, fetch, post
from tests.waiting import TIMEOUT_SECONDS

CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


def framed(*words: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(word), word) for word in words)


def into(received: list[bytes]) -> Callable[[bytes], bool]:
    """Returns a function that takes everything."""

    def take(data: bytes) -> bool:
        received.append(data)
        return True

    return take


async def three_words(peer: Peer) -> None:
    """Sends each word once the one before it is acknowledged."""
    await peer.read_request()
    await peer.send(CHUNKED)
    for word in (b"one", b"two", b"three"):
        await peer.send(framed(word))
        await peer.reader.readexactly(1)
    await peer.send(b"0\r\n\r\n")


async def test_deliver__of_a_stream__takes_each_piece_as_it_arrives(transport: Transport) -> None:
    async with raw_server(three_words) as server:
        response = await transport.send(post(server.url), LONG_TIMEOUTS)
        received = []

        def take(data: bytes) -> bool:
            received.append(data)
            server.peers[0].reader.feed_data(b"!")
            return True

        assert await response.deliver(take) is True
        response.close()
    assert received == [b"one", b"two", b"three"]


async def test_deliver__refused_each_time__goes_on_with_the_rest(transport: Transport) -> None:
    async with raw_server(three_words) as server:
        response = await transport.send(post(server.url), LONG_TIMEOUTS)
        received: list[bytes] = []

        def take(data: bytes) -> bool:
            received.append(data)
            return False

        for expected in ([b"one"], [b"one", b"two"], [b"one", b"two", b"three"]):
            assert await response.deliver(take) is False
            assert received == expected
            server.peers[0].reader.feed_data(b"!")
        assert await response.deliver(take) is True
        response.close()


async def test_deliver__of_what_arrived_together__takes_all_of_it(transport: Transport) -> None:
    whole = CHUNKED + framed(b"one", b"two", b"three") + b"0\r\n\r\n"
    async with raw_server(answering_once(whole)) as server:
        response = await transport.send(post(server.url), LONG_TIMEOUTS)
        received: list[bytes] = []
        assert await response.deliver(into(received)) is True
        response.close()
    assert b"".join(received) == b"onetwothree"


async def test_deliver__after_which_the_connection_is_whole__serves_again(transport: Transport) -> None:
    async with raw_server(answering(answer(b"hello"))) as server:
        for _ in range(3):
            response = await transport.send(post(server.url), LONG_TIMEOUTS)
            assert await response.deliver(lambda data: data == b"hello") is True
            response.close()
        assert server.connections == 1


async def test_deliver__to_a_function_that_fails__raises_its_error_and_hangs_up(transport: Transport) -> None:
    async with raw_server(three_words) as server:
        response = await transport.send(post(server.url), LONG_TIMEOUTS)

        def take(data: bytes) -> bool:
            raise LookupError(data.decode())

        with pytest.raises(LookupError, match="one"):
            await response.deliver(take)
        response.close()
        await asyncio.wait_for(server.peers[0].gone.wait(), TIMEOUT_SECONDS)


@pytest.mark.parametrize("seen", [0, 1], ids=["before the first piece", "after it"])
async def test_deliver__cancelled__loses_nothing(transport: Transport, seen: int) -> None:
    async with raw_server(three_words) as server:
        response = await transport.send(post(server.url), LONG_TIMEOUTS)
        received: list[bytes] = []
        arrived = asyncio.Event()

        def take(data: bytes) -> bool:
            received.append(data)
            arrived.set()
            return True

        delivering = asyncio.ensure_future(response.deliver(take))
        if seen:
            await asyncio.wait_for(arrived.wait(), TIMEOUT_SECONDS)
        delivering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await delivering
        server.peers[0].reader.feed_data(b"!!!")
        assert await response.deliver(take) is True
        response.close()
    assert b"".join(received) == b"onetwothree"


async def test_deliver__cut_short__is_unavailable_after_what_arrived(transport: Transport) -> None:
    async with raw_server(answering_once(CHUNKED + framed(b"hello"))) as server:
        response = await transport.send(post(server.url), LONG_TIMEOUTS)
        received: list[bytes] = []
        with pytest.raises(ProviderError) as caught:
            await response.deliver(into(received))
        response.close()
    assert caught.value.kind is FailureKind.UNAVAILABLE
    assert b"".join(received) in (b"hello", b"")  # aiohttp drops data that came in the same read as the error.


async def test_deliver__of_a_stream_that_falls_silent__times_out(transport: Transport) -> None:
    async with raw_server(three_words) as server:
        response = await transport.send(post(server.url), replace(LONG_TIMEOUTS, idle=0.2))
        received: list[bytes] = []
        with pytest.raises(ProviderError) as caught:
            await response.deliver(into(received))
        response.close()
    assert caught.value.kind is FailureKind.TIMEOUT
    assert received == [b"one"]


async def test_deliver__closed_before__fails(transport: Transport) -> None:
    async with raw_server(three_words) as server:
        response = await transport.send(post(server.url), LONG_TIMEOUTS)
        response.close()
        with pytest.raises(ProviderError):
            await response.deliver(lambda data: True)
        assert await fetch_after(transport)


async def fetch_after(transport: Transport) -> bool:
    """Returns True if the transport still serves."""
    async with raw_server(answering(answer(b"hello"))) as server:
        return await fetch(transport, server.url) == b"hello"
