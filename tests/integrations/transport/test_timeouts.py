"""Tests the time limits of each phase, and the state after a cancelled caller."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import replace

import pytest

from integrations.providers.errors import FailureKind, ProviderError
from integrations.transport.base import Transport
from tests.fakes.raw_server import Peer, RawServer, Script, answer, answering, raw_server
from tests.integrations.transport.requests import LIMIT, LONG_TIMEOUTS, fetch, post
from tests.waiting import TIMEOUT_SECONDS, eventually

SHORT = 0.05
HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n"


def _silent_after(*pieces: bytes) -> Script:
    async def script(peer: Peer) -> None:
        await peer.read_request()
        await peer.send(*pieces)
        await peer.hung_up()

    return script


async def _hang_up(server: RawServer) -> None:
    await eventually(lambda: bool(server.peers) and server.peers[0].gone.is_set())


async def test_connect__handshake_never_answered__times_out(transport: Transport) -> None:
    async def script(peer: Peer) -> None:
        await peer.hung_up()

    async with raw_server(script) as server:
        with pytest.raises(ProviderError) as caught:
            await fetch(
                transport, f"https://127.0.0.1:{server.port}/?key=s", timeouts=replace(LONG_TIMEOUTS, connect=0.3)
            )
        assert caught.value.kind is FailureKind.TIMEOUT
        assert caught.value.message == "No connection to 127.0.0.1 within 0.3 s"
        await _hang_up(server)


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\nx-half:"], ids=["nothing", "half a head"])
async def test_first_byte__too_late__times_out_and_hangs_up(transport: Transport, sent: bytes) -> None:
    async with raw_server(_silent_after(sent)) as server:
        with pytest.raises(ProviderError) as caught:
            await fetch(transport, server.url, timeouts=replace(LONG_TIMEOUTS, first_byte=SHORT))
        assert caught.value.kind is FailureKind.TIMEOUT
        assert caught.value.message == "127.0.0.1 did not answer within 0.05 s"
        await _hang_up(server)


async def test_first_byte__too_late_on_a_kept_connection__is_not_tried_again(transport: Transport) -> None:
    async def script(peer: Peer) -> None:
        await peer.read_request()
        await peer.send(answer())
        await peer.hung_up()

    async with raw_server(script) as server:
        await fetch(transport, server.url)
        with pytest.raises(ProviderError) as caught:
            await fetch(transport, server.url, timeouts=replace(LONG_TIMEOUTS, first_byte=SHORT))
        assert caught.value.kind is FailureKind.TIMEOUT
        assert server.connections == 1


@pytest.mark.parametrize("pieces", [[HEAD], [HEAD, b"hello"]], ids=["after the head", "inside the body"])
async def test_body__silent__times_out(transport: Transport, pieces: list[bytes]) -> None:
    async with raw_server(_silent_after(*pieces)) as server:
        response = await transport.send(post(server.url), replace(LONG_TIMEOUTS, idle=SHORT))
        with pytest.raises(ProviderError) as caught:
            await response.read(limit=LIMIT)
        assert caught.value.kind is FailureKind.TIMEOUT
        assert caught.value.message == "127.0.0.1 stopped sending for 0.05 s"
        response.close()
        await _hang_up(server)


async def test_body__still_coming_when_its_time_is_over__times_out(transport: Transport) -> None:
    async with raw_server(_silent_after(HEAD, b"hello")) as server:
        response = await transport.send(post(server.url), LONG_TIMEOUTS)
        with pytest.raises(ProviderError) as caught:
            await response.read(limit=LIMIT, until=time.monotonic() - 1)
        assert caught.value.kind is FailureKind.TIMEOUT
        await _hang_up(server)


async def test_body__longer_than_the_idle_timeout_but_never_silent__is_whole(transport: Transport) -> None:
    async def script(peer: Peer) -> None:
        await peer.read_request()
        await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n")
        for _ in range(12):
            await peer.send(b"x")
            await asyncio.sleep(0.3)

    async with raw_server(script) as server:
        assert await fetch(transport, server.url, timeouts=replace(LONG_TIMEOUTS, idle=3)) == b"x" * 12


async def test_read__cancelled_and_repeated__loses_nothing(transport: Transport) -> None:
    proceed = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.read_request()
        await peer.send(HEAD)
        await proceed.wait()
        await peer.send(b"hello", b"world")

    async with raw_server(script) as server:
        response = await transport.send(post(server.url), LONG_TIMEOUTS)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(anext(response.chunks()), SHORT)
        proceed.set()
        assert await response.read(limit=LIMIT) == b"helloworld"
        response.close()


async def test_read__cancelled_again_and_again__still_times_out(transport: Transport) -> None:
    async with raw_server(_silent_after(HEAD)) as server:
        response = await transport.send(post(server.url), replace(LONG_TIMEOUTS, idle=0.2))
        with pytest.raises(ProviderError) as caught:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                while True:
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(anext(response.chunks()), SHORT)
        assert caught.value.kind is FailureKind.TIMEOUT
        response.close()


async def test_send__cancelled__hangs_up_at_once(transport: Transport) -> None:
    async with raw_server(_silent_after()) as server:
        sending = asyncio.ensure_future(transport.send(post(server.url), LONG_TIMEOUTS))
        await eventually(lambda: server.connections == 1)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        await asyncio.wait_for(server.peers[0].gone.wait(), TIMEOUT_SECONDS)


async def test_stream__closed_while_it_runs__hangs_up_at_once(transport: Transport) -> None:
    async with raw_server(_silent_after(HEAD, b"hello")) as server:
        response = await transport.send(post(server.url), LONG_TIMEOUTS)
        assert await anext(response.chunks()) == b"hello"
        response.close()
        await asyncio.wait_for(server.peers[0].gone.wait(), TIMEOUT_SECONDS)


async def test_connection__after_many_phases__keeps_serving(transport: Transport) -> None:
    async with raw_server(answering(answer())) as server:
        for first_byte in (50, 30, 45, 40, 50):
            assert (
                await fetch(transport, server.url, timeouts=replace(LONG_TIMEOUTS, first_byte=first_byte)) == b"hello"
            )
        assert server.connections == 1
