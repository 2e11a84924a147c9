"""A client that has ended its half of the connection: it waits for its answer, or it is gone.

To the kernel both look the same until something is sent: who is gone answers that with a reset. So an interim answer
goes out, `100 Continue`, which every HTTP/1.1 client has to pass over, and what comes back is looked for until the
answer is complete. Clients of HTTP/1.0 take no interim answers: the end of theirs means, as in most servers, that they
are gone.
"""

from __future__ import annotations

import asyncio
import socket

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"
# An abandoned call of a provider has to end within a second.
_LOOK_SECONDS = 0.2


class HalfClosed:
    """Looks after one connection from its client's end of file to the end of its last answer."""

    def __init__(self, protocol: HttpToolsProtocol) -> None:
        self._transport: asyncio.Transport = protocol.transport
        self._loop = protocol.loop
        protocol.cycle.keep_alive = False
        # While answers to earlier requests go out, they tell as much.
        if not protocol.pipeline:
            self._transport.write(_INTERIM)
        self._loop.call_later(_LOOK_SECONDS, self._look)

    @staticmethod
    def may_wait(protocol: HttpToolsProtocol) -> bool:
        """Whether the client is owed an answer that can still be preceded by an interim one."""
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
