"""The answer path of the gateway's busiest routes: a request whose URL is exactly one of their paths goes from the
parser to its endpoint. The routing of the ASGI application, and the parts of a scope that no endpoint reads, would cost
more than decoding the request.

An endpoint is called as any ASGI application is, so that requests of any other form, and other servers, get the same
answers through `config.asgi`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from typing_extensions import override
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl

from config.web.response import OneWriteCycle


class DirectCycle(OneWriteCycle):
    """A POST request to an endpoint of the gateway, and its response."""

    access_log = False

    def __init__(
        self,
        scope: Any,
        transport: asyncio.Transport,
        flow: FlowControl,
        logger: Any,
        default_headers: list[tuple[bytes, bytes]],
        on_response: Callable[[], None],
        *,
        expects_continue: bool,
        keep_alive: bool,
    ) -> None:
        # uvicorn's constructor is not called: it takes half of the time that this class saves.
        self.scope = scope
        self.transport = transport
        self.flow = flow
        self.logger = logger
        self.default_headers = default_headers
        self.on_response = on_response
        self.message_event = asyncio.Event()
        self.waiting_for_100_continue = expects_continue
        self.keep_alive = keep_alive
        self.disconnected = False
        self.more_body = True
        self.response_started = False
        self.response_complete = False
        self.chunked_encoding = None
        self.expected_content_length = 0
        self._pieces: list[bytes] = []
        self._buffered = 0

    def add_body(self, data: bytes) -> None:
        """Adds what arrived of the body; reading pauses while much of it waits for the endpoint."""
        self._pieces.append(data)
        self._buffered += len(data)
        if self._buffered > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        self.message_event.set()

    @override
    async def receive(self) -> Any:
        event = self.message_event
        if self.waiting_for_100_continue and not self.transport.is_closing():
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.waiting_for_100_continue = False
        if not self.disconnected and not self.response_complete:
            self.flow.resume_reading()
            if not event.is_set():
                await event.wait()
            event.clear()
        if self.disconnected or self.response_complete:
            return {"type": "http.disconnect"}
        pieces, self._pieces, self._buffered = self._pieces, [], 0
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        return {"type": "http.request", "body": body, "more_body": self.more_body}
