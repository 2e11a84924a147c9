"""The server of a web worker, beyond what `tests/live` sees of it from outside."""

from __future__ import annotations

import socket

import uvicorn

from config.supervisor.web_worker import _Server
from config.web.protocol import BoundedProtocol


async def test_draining__a_second_later__still_sends_clients_elsewhere() -> None:
    """uvicorn makes the headers of every answer anew once a second, at each tenth tick."""
    config = uvicorn.Config("config.asgi:application", http=BoundedProtocol, ws="none", log_config=None)
    config.load()
    with socket.socket() as listening:
        server = _Server(config, listening, -1, max_connections=1)
        await server.on_tick(0)

        server._send_clients_elsewhere()
        at_once = list(server.server_state.default_headers)
        await server.on_tick(10)

    assert (b"connection", b"close") in at_once
    assert server.server_state.default_headers.count((b"connection", b"close")) == 1
