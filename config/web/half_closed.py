"""Tells a client that has closed its half of the connection and waits for its answer from one that is gone.

Both look the same to the kernel until data is sent: a client that is gone answers with a reset. So the worker sends the
interim response `100 Continue`, which every HTTP/1.1 client skips, and watches for a reset until the answer is
complete. HTTP/1.0 has no interim responses: such a client counts as gone, as in most servers.
"""

from __future__ import annotations

import asyncio
import socket

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"
# The call to a provider for a client that is gone has to end within a second.
_LOOK_SECONDS = 0.2


class HalfClosed:
    def __init__(self, protocol: HttpToolsProtocol) -> None:
        self._transport: asyncio.Transport = protocol.transport
        self._loop = protocol.loop
        protocol.cycle.keep_alive = False
        # While answers to earlier requests are sent, they cause the reset themselves.
        if not protocol.pipeline:
            self._transport.write(_INTERIM)
        self._loop.call_later(_LOOK_SECONDS, self._look)

    @staticmethod
    def may_wait(protocol: HttpToolsProtocol) -> bool:
        cycle = protocol.cycle
        if cycle.response_complete or protocol.scope["http_version"] != "1.1":
            return False
        return bool(protocol.pipeline) or not cycle.response_started

    def _look(self) -> None:
        if self._transport.is_closing():
            return
        connection: socket.socket = self._transport.get_extra_info("socket")
        if connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self._transport.abort()
        else:
            self._loop.call_later(_LOOK_SECONDS, self._look)
