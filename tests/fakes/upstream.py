"""A local HTTP/1.1 server whose answers are written by hand, byte by byte, in a thread of its own.

It uses raw sockets and no web framework, because tests need half answers, resets and splits inside a character.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from tests.waiting import TIMEOUT_SECONDS

MAX_HEAD_BYTES = 1 << 20


@dataclass
class Received:
    """A request as it arrived. Header names are lower case; `gone` is set, with the time (monotonic seconds), when the
    peer hangs up before its answer is complete."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    arrived_at: float
    gone: threading.Event = field(default_factory=threading.Event)
    gone_at: float | None = None


class Connection:
    """Every `send` is one write to the socket."""

    def __init__(self, writer: asyncio.StreamWriter, lost: asyncio.Event) -> None:
        self._writer = writer
        self.lost = lost

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def send_whole(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        await self.send(head(status, {**(headers or {}), "content-length": str(len(body))}) + body)

    async def start_stream(self, status: int = 200, headers: dict[str, str] | None = None) -> None:
        given = {"content-type": "text/event-stream", **(headers or {}), "transfer-encoding": "chunked"}
        await self.send(head(status, given))

    async def send_chunk(self, data: bytes) -> None:
        await self.send(b"%x\r\n%b\r\n" % (len(data), data))

    async def end_stream(self) -> None:
        await self.send(b"0\r\n\r\n")

    async def wait_until_gone(self) -> None:
        await self.lost.wait()

    def hang_up(self) -> None:
        """Closes normally: written data arrives, then the end."""
        self._writer.close()

    def reset(self) -> None:
        sock: socket.socket = self._writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()


Answer = Callable[[Received, Connection], Awaitable[None]]


def head(status: int, headers: dict[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} X", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


class _Protocol(asyncio.StreamReaderProtocol):
    """Detects the peer's end while an answer is being written, which a plain stream server does not."""

    def __init__(self, reader: asyncio.StreamReader, serve: Callable[..., Awaitable[None]]) -> None:
        self.lost = asyncio.Event()
        super().__init__(reader, lambda r, w: serve(r, w, self.lost))

    def eof_received(self) -> bool | None:
        self.lost.set()
        return super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set()
        super().connection_lost(exc)


class UpstreamServer:
    """Runs `answer` for each request; `received` holds the requests in order of arrival."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.received: list[Received] = []
        self.connections = 0
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._listening = threading.Event()
        self._thread = threading.Thread(target=self._run, name="upstream", daemon=True)
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._listening.wait(TIMEOUT_SECONDS):
            raise RuntimeError("the upstream server did not start")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(TIMEOUT_SECONDS)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._listen())
        finally:
            for task in asyncio.all_tasks(self._loop):
                task.cancel()
            self._loop.run_until_complete(asyncio.sleep(0.01))
            self._loop.close()

    async def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: _Protocol(asyncio.StreamReader(limit=MAX_HEAD_BYTES), self._serve), "127.0.0.1", 0
        )
        self.port = server.sockets[0].getsockname()[1]
        self._listening.set()
        await self._stop.wait()
        server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, lost: asyncio.Event) -> None:
        self.connections += 1
        connection = Connection(writer, lost)
        # The task is cancelled only when the server stops; the loop's own callback would log that as a failure.
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while not lost.is_set():
                request = await _read_request(reader)
                self.received.append(request)
                watch = asyncio.ensure_future(_note_end(request, lost))
                try:
                    await self._answer(request, connection)
                finally:
                    if not lost.is_set():
                        watch.cancel()
        writer.close()


async def _note_end(request: Received, lost: asyncio.Event) -> None:
    await lost.wait()
    request.gone_at = time.monotonic()
    request.gone.set()


async def _read_request(reader: asyncio.StreamReader) -> Received:
    raw = await reader.readuntil(b"\r\n\r\n")
    first, *lines = raw.decode("latin-1").rstrip("\r\n").split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    arrived_at = time.monotonic()
    return Received(method, path, headers, await _read_body(reader, headers), arrived_at)


async def _read_body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() != "chunked":
        return await reader.readexactly(int(headers.get("content-length", "0")))
    pieces = []
    while size := int(await reader.readuntil(b"\r\n"), 16):
        pieces.append(await reader.readexactly(size))
        await reader.readexactly(2)
    await reader.readexactly(2)
    return b"".join(pieces)
