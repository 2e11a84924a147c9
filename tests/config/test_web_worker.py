from __future__ import annotations

import asyncio
import os
import socket

import uvicorn

from config.supervisor.web import WebWorker
from config.supervisor.web_worker import _Server
from config.web.protocol import BoundedProtocol


async def test_draining__headers_made_anew__still_sends_clients_elsewhere() -> None:
    """uvicorn makes the headers of every answer at each tenth tick, of which there is one here, at the start."""
    config = uvicorn.Config("config.asgi:application", http=BoundedProtocol, ws="none", log_config=None)
    config.load()
    with socket.socket() as listening:
        server = _Server(config, listening, -1, -1, max_connections=1)
        await server.on_tick(0)

        server._send_clients_elsewhere()
        at_once = list(server.server_state.default_headers)
        await server.on_tick(10)

    assert (b"connection", b"close") in at_once
    assert server.server_state.default_headers.count((b"connection", b"close")) == 1


async def test_ready__another_worker_answers_on_the_shared_socket__waits_for_its_own_process() -> None:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        writer.close()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        async with await asyncio.start_server(answer, sock=listening):
            worker = WebWorker(1, listening, -1, drain_seconds=0)
            serving = worker.program().descriptors[-1]
            ready = asyncio.create_task(worker.ready())
            reader, writer = await asyncio.open_connection(*listening.getsockname())
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            writer.close()
            assert not ready.done()

            os.write(serving, b".")
            await ready
