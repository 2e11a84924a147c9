from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import Any, Protocol

import msgspec

from core.errors import ApplicationError
from gateway.protocol import headers, sse

Scope = dict[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
HeaderList = list[tuple[bytes, bytes]]

RESPONSE_WRITER = "prompt_gateway.response_writer"
"""The name of the ASGI extension by which a server sends an answer, or a piece of a stream, at once: its value is a
`ResponseWriter` (https://asgi.readthedocs.io/en/latest/extensions.html)."""


class ResponseWriter(Protocol):
    """A response that is sent without being awaited, while the client reads quickly enough."""

    @property
    def takes_pieces(self) -> bool: ...

    def write_piece(self, data: bytes) -> bool:
        """Sends a piece of a stream. Returns False, and has sent nothing, unless the response `takes_pieces`."""
        ...

    def write_whole(self, status: int, headers: HeaderList, body: bytes) -> bool:
        """Sends a whole response. Returns False, and has sent nothing, if that takes more than one write.

        `headers` hold the length of the body, and nothing else about its framing.
        """
        ...


JSON = (b"content-type", b"application/json")
_STREAM: HeaderList = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    # nginx buffers a stream until its end unless this header forbids it.
    (b"x-accel-buffering", b"no"),
]


def _refuse_piece(data: bytes) -> bool:
    return False


class Reply:
    """One response. Call either `whole`, or `start_stream`, then `part` any number of times, then `end`.

    `before_last` is called once, before the bytes that end the response leave. `request` is the request as its surface
    read it, None for chat completions. `is_native`: the answer is in the client's own protocol and leaves as it came.
    `ids` are the headers that name the request. `writer` is the server's extension, if it has one. `call` answers in
    place of the pipeline's stages, None for a question to a model. `sender` is what is already known of the sender,
    None if it has to be found.
    """

    __slots__ = (
        "_send",
        "before_last",
        "call",
        "ids",
        "is_native",
        "request",
        "request_id",
        "sender",
        "started",
        "writer",
    )

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self.writer: ResponseWriter | None = None
        self.request_id = request_id
        self.ids: HeaderList = [(headers.REQUEST_ID, request_id.encode())]
        self.started = False
        self.is_native = False
        self.request: Any = None
        self.call: Any = None
        self.sender: Any = None
        self.before_last: Callable[[], None] | None = None

    def settle(self) -> None:
        if self.before_last is not None:
            call, self.before_last = self.before_last, None
            call()

    async def whole(
        self, status: int, body: bytes, extra: HeaderList, content_type: tuple[bytes, bytes] = JSON
    ) -> None:
        self.settle()
        self.started = True
        all_headers = [
            content_type,
            (b"content-length", b"%d" % len(body)),
            *self.ids,
            *extra,
        ]
        if self.writer is not None and self.writer.write_whole(status, all_headers, body):
            return
        await self._send({"type": "http.response.start", "status": status, "headers": all_headers})
        await self._send({"type": "http.response.body", "body": body})

    async def json(self, content: Mapping[str, Any]) -> None:
        await self.whole(200, msgspec.json.encode(content), [])

    async def error(self, error: ApplicationError, more: HeaderList | None = None) -> None:
        extra = [
            *(more or ()),
            *((name.encode(), value.encode("latin-1", "replace")) for name, value in error.headers.items()),
        ]
        if error.status in (408, 413):
            extra.append((b"connection", b"close"))
            self.writer = None
        await self.whole(error.status, self.encoded_error(error), extra)

    def encoded_error(self, error: ApplicationError) -> bytes:
        return msgspec.json.encode(error.envelope())

    async def start_stream(self, extra: HeaderList) -> None:
        self.started = True
        all_headers = [*_STREAM, *self.ids, *extra]
        await self._send({"type": "http.response.start", "status": 200, "headers": all_headers})

    def piece_writer(self) -> Callable[[bytes], bool]:
        """Returns a function that does what `part` does, without waiting, for a stream that has started.

        It returns False, and has done nothing, if it cannot.
        """
        return self.writer.write_piece if self.writer is not None else _refuse_piece

    def part(self, data: bytes) -> Awaitable[None]:
        # Every chunk of a stream passes here, and a coroutine of its own would cost more than the rest.
        return self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self, data: bytes) -> None:
        await self.end_with(data + sse.DONE)

    async def end_with(self, data: bytes) -> None:
        self.settle()
        await self._send({"type": "http.response.body", "body": data})

    async def end_with_error(self, error: ApplicationError, sent: Sequence[bytes] = ()) -> None:
        """Ends a stream that failed after its first output: sends one event of the error, and the terminator.

        `sent` are the parts of the answer that have left.
        """
        await self.end(sse.frame(msgspec.json.encode(error.envelope())))
