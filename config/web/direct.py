"""The fast path of model requests: if a URL is exactly the path of a client protocol, or names a model and a method as
Gemini's do, the parser calls its consumer by the tables that `config.asgi` makes from Channels' routes.

A consumer is called as any ASGI application is, so requests of any other form, and other servers, get the same answers
through the router. The router takes 2 to 7 µs, and the parts of a scope that no consumer reads take more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from config.web.response import OneWriteCycle

_OK = STATUS_LINE[200]


class Arrival:
    __slots__ = ("_cycle",)

    def __init__(self, cycle: DirectCycle) -> None:
        self._cycle = cycle

    def set(self) -> None:
        self._cycle.note_arrival()


class DirectCycle(OneWriteCycle):
    access_log = False
    # The event of a `receive` that waits. Nearly every body has arrived before it is asked for, and needs none.
    _event: asyncio.Event | None = None
    # Reading pauses above so many bytes that the endpoint has not asked for.
    high_water = HIGH_WATER_LIMIT
    # The function of an endpoint that answers without a task (`gateway.protocol.arrived`).
    on_change: Callable[[], None] | None = None
    memory: dict[str, Any]
    # What every request begins with is the class's, which makes a request cheaper.
    disconnected = False
    more_body = True
    response_started = False
    response_complete = False
    chunked_encoding = None
    expected_content_length = 0
    _buffered = 0
    _has_arrived = False

    def __init__(
        self,
        scope: Any,
        transport: asyncio.Transport,
        flow: FlowControl,
        logger: Any,
        default_headers: list[tuple[bytes, bytes]],
        on_response: Callable[[], None],
        start: Callable[[DirectCycle, Any], None],
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
        self._start = start
        self.waiting_for_100_continue = expects_continue
        self.keep_alive = keep_alive
        self._pieces: list[bytes] = []

    @property
    def message_event(self) -> Any:  # type: ignore[override]  # uvicorn only calls `set`
        return Arrival(self)

    def note_arrival(self) -> None:
        self._has_arrived = True
        if self._event is not None:
            self._event.set()
        if self.on_change is not None:
            self.on_change()

    def add_body(self, data: bytes) -> None:
        self._pieces.append(data)
        self._buffered += len(data)
        if self._buffered > self.high_water:
            self.flow.pause_reading()
        self.note_arrival()

    @property
    def is_large(self) -> bool:
        return self._buffered > self.high_water

    # The following methods are those of `gateway.protocol.arrived.ArrivedRequest`.

    def whole_body(self) -> bytes:
        if self._buffered > self.high_water:
            self.flow.resume_reading()  # An end of the connection is read, too.
        self._has_arrived = True
        pieces = self._pieces
        if len(pieces) != 1:
            pieces[:] = [b"".join(pieces)]
        return pieces[0]

    @property
    def takes_answer(self) -> bool:
        return self.keep_alive and not (self.disconnected or self.default_headers or self.flow.write_paused)

    def answer(self, head: bytes, body: bytes) -> None:
        self.on_change = None
        self.response_started = True
        self.chunked_encoding = False
        self._write_all(b"".join((_OK, head, body)))

    def start(self, application: Any) -> None:
        self.on_change = None
        self._start(self, application)

    async def receive(self) -> Any:
        if self.waiting_for_100_continue and not self.transport.is_closing():
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.waiting_for_100_continue = False
        if not self.disconnected and not self.response_complete:
            self.flow.resume_reading()
            while not self._has_arrived:
                event = self._event = self._event or asyncio.Event()
                event.clear()
                await event.wait()
            self._has_arrived = False
        if self.disconnected or self.response_complete:
            return {"type": "http.disconnect"}
        pieces, self._pieces, self._buffered = self._pieces, [], 0
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        return {"type": "http.request", "body": body, "more_body": self.more_body}
