from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator

import pytest

from config.supervisor.acceptor import Acceptor
from config.supervisor.web import listen

_BURST = 40


class _Counted(asyncio.Protocol):
    def __init__(self, opened: list[asyncio.BaseTransport]) -> None:
        self._opened = opened

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._opened.append(transport)
        assert isinstance(transport, asyncio.Transport)
        transport.write(b"hello\n")


class _Worker:
    def __init__(self, listening: socket.socket, *, max_connections: int = 1000) -> None:
        self.opened: list[asyncio.BaseTransport] = []
        self.acceptor = Acceptor(
            listening, lambda: _Counted(self.opened), lambda: len(self.opened), max_connections=max_connections
        )


@pytest.fixture
async def listening() -> AsyncIterator[socket.socket]:
    with listen("127.0.0.1", 0) as made:
        yield made


async def _connect(listening: socket.socket, count: int) -> None:
    async def greeted() -> asyncio.StreamWriter:
        reader, writer = await asyncio.open_connection(*listening.getsockname())
        assert await reader.readline() == b"hello\n"
        return writer

    writers = await asyncio.wait_for(asyncio.gather(*(greeted() for _ in range(count))), 30)
    for writer in writers:
        writer.close()
        await writer.wait_closed()


async def test_acceptor__burst_on_two_workers__both_get_some_and_none_is_lost(listening: socket.socket) -> None:
    first, second = _Worker(listening), _Worker(listening.dup())

    await _connect(listening, _BURST)

    assert len(first.opened) + len(second.opened) == _BURST
    assert min(len(first.opened), len(second.opened)) >= 8
    for worker in (first, second):
        worker.acceptor.close()
        for transport in worker.opened:
            transport.close()


async def test_acceptor__burst_on_a_worker_with_many__does_not_wait_a_turn_of_the_loop_each(
    listening: socket.socket,
) -> None:
    clients = [socket.create_connection(listening.getsockname()) for _ in range(11)]
    opened: list[asyncio.BaseTransport] = []
    acceptor = Acceptor(listening, lambda: _Counted(opened), lambda: 40 + len(opened), max_connections=1000)

    turns = 0
    while len(opened) < len(clients):
        await asyncio.sleep(0)
        turns += 1

    assert turns < len(clients)
    acceptor.close()
    for transport in opened:
        transport.close()
    for client in clients:
        client.close()


async def test_acceptor__closed__refuses_and_ends_twice_without_harm(listening: socket.socket) -> None:
    address = listening.getsockname()
    worker = _Worker(listening)

    worker.acceptor.close()
    worker.acceptor.close()

    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(*address)
    assert worker.opened == []


async def test_acceptor__full__turns_away_with_a_reason_until_there_is_room(
    listening: socket.socket, caplog: pytest.LogCaptureFixture
) -> None:
    worker = _Worker(listening, max_connections=3)
    await _connect(listening, 3)

    for _ in range(4):
        reader, writer = await asyncio.open_connection(*listening.getsockname())
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        answer = await asyncio.wait_for(reader.read(), 30)
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
        assert b"\r\nretry-after: 1" in head
        assert b"\r\nconnection: close" in head
        assert json.loads(body)["error"]["code"] == "too_many_connections"
        writer.close()
    worker.opened.pop().close()
    await _connect(listening, 1)

    assert [record.getMessage() for record in caplog.records] == ["connections.full most=3", "connections.free most=3"]
    worker.acceptor.close()
    for transport in worker.opened:
        transport.close()
