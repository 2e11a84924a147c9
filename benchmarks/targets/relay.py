"""The least that a gateway's work costs in Python: a proxy that parses and decodes what it passes on, and does nothing
else. It has no errors, limits, time-outs or records.

The command is `python relay.py PORT UPSTREAM_PORT`.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from typing import Any, cast

import httptools
import msgspec
import uvloop

_decode = msgspec.json.Decoder(dict[str, Any]).decode
_ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
_STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_REQUEST = (
    b"POST /v1/chat/completions HTTP/1.1\r\nhost: mock\r\n"
    b"content-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
)


class Upstream(asyncio.Protocol):
    def __init__(self, idle: deque[Upstream]) -> None:
        self.client: Client | None = None
        self._idle = idle
        self._parser: Any = httptools.HttpResponseParser(self)
        self._pieces: list[bytes] = []
        self._is_stream = False
        self._is_complete = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def send(self, client: Client, body: bytes) -> None:
        self.client = client
        self._is_stream = self._is_complete = False
        self._transport.write(_REQUEST % (len(body), body))

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)
        client = self.client
        if client is None:
            return
        if self._is_stream and self._pieces:
            events = b"".join(self._pieces)
            self._pieces.clear()
            for event in events.split(b"\n\n"):
                if event.startswith(b"data: {"):
                    _decode(event[6:])
            client.transport.write(b"%x\r\n%b\r\n" % (len(events), events))
        if self._is_complete:
            self.client = None
            self._idle.append(self)
            client.end(None if self._is_stream else b"".join(self._pieces))
            self._pieces.clear()

    def on_header(self, name: bytes, value: bytes) -> None:
        if value.startswith(b"text/event-stream"):
            self._is_stream = True

    def on_headers_complete(self) -> None:
        if self._is_stream and self.client is not None:
            self.client.transport.write(_STREAM)

    def on_body(self, data: bytes) -> None:
        self._pieces.append(data)

    def on_message_complete(self) -> None:
        self._is_complete = True


class Client(asyncio.Protocol):
    def __init__(self, upstream_port: int, idle: deque[Upstream]) -> None:
        self._upstream_port = upstream_port
        self._idle = idle
        self._parser: Any = httptools.HttpRequestParser(self)
        self._pieces: list[bytes] = []
        self._opening: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, data: bytes) -> None:
        self._pieces.append(data)

    def on_message_complete(self) -> None:
        body = b"".join(self._pieces)
        self._pieces.clear()
        if self._parser.get_method() != b"POST":
            self.end(b"{}")
            return
        _decode(body)
        if self._idle:
            self._idle.pop().send(self, body)
        else:
            self._opening = asyncio.create_task(self._open(body))

    def end(self, body: bytes | None) -> None:
        """None ends a stream."""
        if body is None:
            self.transport.write(b"0\r\n\r\n")
            return
        _decode(body)
        self.transport.write(_ANSWER % (len(body), body))

    async def _open(self, body: bytes) -> None:
        loop = asyncio.get_running_loop()
        _, upstream = await loop.create_connection(lambda: Upstream(self._idle), "127.0.0.1", self._upstream_port)
        upstream.send(self, body)


async def main(port: int, upstream_port: int) -> None:
    idle: deque[Upstream] = deque()
    server = await asyncio.get_running_loop().create_server(
        lambda: Client(upstream_port, idle), "127.0.0.1", port, backlog=2048
    )
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]), int(sys.argv[2])))
