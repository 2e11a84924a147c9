"""Tests many parallel streams, and a reader that is slower than its peer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from integrations.transport.base import Transport
from tests.fakes.raw_server import Peer, raw_server
from tests.integrations.transport.requests import LONG_TIMEOUTS, fetch, post
from tests.waiting import TIMEOUT_SECONDS

STREAMS = 512
MEBIBYTE = 1 << 20


async def test_streams__512_at_once__all_run_to_their_end(transport: Transport) -> None:
    everyone = asyncio.Event()
    arrived = 0

    async def script(peer: Peer) -> None:
        nonlocal arrived
        request = await peer.read_request()
        await peer.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        arrived += 1
        if arrived == STREAMS:
            everyone.set()
        await everyone.wait()  # No stream ends before all have begun.
        await peer.send(b"%x\r\n%b\r\n" % (len(request.body), request.body), b"3\r\nend\r\n0\r\n\r\n")

    async with raw_server(script) as server:
        bodies = [b"stream %d" % number for number in range(STREAMS)]
        answers = await asyncio.gather(*(fetch(transport, server.url, body) for body in bodies))
    assert answers == [body + b"end" for body in bodies]


async def test_reader__that_does_not_read__stalls_the_peer(transport: Transport) -> None:
    size = 64 * MEBIBYTE
    written = 0

    async def script(peer: Peer) -> None:
        nonlocal written
        await peer.read_request()
        await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size)
        while written < size:
            peer.writer.write(bytes(MEBIBYTE))
            await peer.writer.drain()
            written += MEBIBYTE

    async with raw_server(script) as server:
        response = await transport.send(post(server.url), LONG_TIMEOUTS)
        await _until_still(lambda: written)
        assert written < size // 2
        received = 0
        async for piece in response.chunks():
            received += len(piece)
        response.close()
        assert received == size


async def _until_still(progress: Callable[[], int]) -> None:
    """Returns when `progress()` is above zero and has not changed for a fifth of a second."""
    before = -1
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while before != progress() or not before:
            before = progress()
            await asyncio.sleep(0.2)
