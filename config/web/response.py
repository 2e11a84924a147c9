"""A web worker's response. uvicorn writes the head and the body separately; here the head of an answer of known length
waits for the body, and both leave in one system call."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from uvicorn.protocols.http.httptools_impl import HEADER_RE, STATUS_LINE, RequestResponseCycle

# uvicorn handles the headers that change how a response ends.
_FRAMING = frozenset({b"transfer-encoding", b"connection"})

_LINE = b": ".join

# The lines in front of chunks by their sizes, of those that most pieces of a stream have.
_SMALL = 1024
_CHUNK_HEADS = tuple(b"%x\r\n" % size for size in range(_SMALL))

# A complete response has this scope. The scope of its request refers to the response by its extensions, so that the two
# would wait for the garbage collector, together with all that the scope holds.
_ENDED: Any = {"type": "http", "method": "POST", "path": "", "headers": []}

# The method is looked up once: `super()` in each call would cost as much as the rest.
_send = RequestResponseCycle.send


class OneWriteCycle(RequestResponseCycle):
    # The bytes of a head that waits for its body. ASGI lets a server keep a head back until then.
    _head: bytes | None = None

    async def send(self, message: Any) -> None:
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if not self.response_started:
            if message["type"] == "http.response.start" and self._keeps(message):
                return
        elif self._head is not None:
            head, self._head = self._head, None
            body = message.get("body", b"")
            if len(body) == self.expected_content_length and not message.get("more_body", False):
                self._write_all(head + body)
                return
            if not self.disconnected:
                self.transport.write(head)
        elif message.get("more_body", False) and message.get("body") and self._is_streaming:
            self._write_chunk(message["body"])
            return
        await _send(self, message)
        if self.response_complete:
            self.scope = _ENDED

    @property
    def takes_pieces(self) -> bool:
        return self._is_streaming and not self.flow.write_paused

    def write_piece(self, data: bytes) -> bool:
        # `takes_pieces` and `_write_chunk` would be three more calls for each chunk of every stream.
        if not self.chunked_encoding or self.response_complete or self.flow.write_paused:
            return False
        if self.scope["method"] == "HEAD":
            return False
        if not self.disconnected:
            size = len(data)
            head = _CHUNK_HEADS[size] if size < _SMALL else b"%x\r\n" % size
            self.transport.write(b"".join((head, data, b"\r\n")))
        return True

    def write_whole(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> bool:
        if self.response_started or self.default_headers or self.access_log or not self.keep_alive:
            return False
        if self.flow.write_paused:
            return False
        head = STATUS_LINE[status] + b"\r\n".join([*map(_LINE, headers), b"", b""])
        # A value with a line break would be one more line. uvicorn refuses it, and what else HTTP does not allow.
        lines = len(headers) + 2
        if head.count(b"\n") != lines or head.count(b"\r") != lines or self.scope["method"] == "HEAD":
            return False
        self.response_started = True
        self.chunked_encoding = False
        self.waiting_for_100_continue = False
        self._write_all(head + body)
        return True

    @property
    def _is_streaming(self) -> bool:
        return bool(self.chunked_encoding) and not self.response_complete and self.scope["method"] != "HEAD"

    def _write_chunk(self, data: bytes) -> None:
        if not self.disconnected:
            self.transport.write(b"%x\r\n%b\r\n" % (len(data), data))

    def _keeps(self, start: Any) -> bool:
        if not self.keep_alive or self.access_log or self.scope["method"] == "HEAD":
            return False
        headers = [*self.default_headers, *start.get("headers", ())]
        names = [header[0] for header in headers]
        values = [header[1] for header in headers]
        # uvicorn refuses control characters. A text with none is printable; uvicorn looks at any other itself.
        if not all(map(_is_plain, names)) or not b"".join(values).decode("latin-1").isprintable():
            return False
        if not _FRAMING.isdisjoint(names) or names.count(b"content-length") != 1:
            return False
        self.expected_content_length = int(values[names.index(b"content-length")])
        self._head = STATUS_LINE[start["status"]] + b"\r\n".join([*map(_LINE, headers), b"", b""])
        self.chunked_encoding = False
        self.response_started = True
        self.waiting_for_100_continue = False
        return True

    def note_arrival(self) -> None:
        self.message_event.set()

    def _write_all(self, data: bytes) -> None:
        if self.disconnected:
            return
        self.transport.write(data)
        self.expected_content_length = 0
        self.response_complete = True
        self.scope = _ENDED
        self.note_arrival()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()


@lru_cache(maxsize=1024)
def _is_plain(name: bytes) -> bool:
    return name == name.lower() and not HEADER_RE.search(name)
