"""A server in the test's own event loop that runs a script for each connection, byte by byte."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Received:
    """Header names are lower case."""

    line: str
    headers: dict[str, str]
    body: bytes


class Peer:
    def __init__(self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.number = number
        self.reader = reader
        self.writer = writer
        self.gone = asyncio.Event()
        self.ended = asyncio.Event()
        """Set when the server's side is closed."""

    async def read_head(self) -> tuple[str, dict[str, str]]:
        """Raises IncompleteReadError if the client hung up before."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *fields = head[:-4].split("\r\n")
        pairs = (name_and_value.split(": ", 1) for name_and_value in fields)
        return line, {name.lower(): value for name, value in pairs}

    async def read_request(self) -> Received:
        line, headers = await self.read_head()
        return Received(line, headers, await self.reader.readexactly(int(headers.get("content-length", 0))))

    async def send(self, *pieces: bytes) -> None:
        """Writes every piece separately, and gives the client a turn in between.

        Raises ConnectionError if the client is gone.
        """
        for piece in pieces:
            if self.writer.is_closing():
                # uvloop's transports raise a RuntimeError once they are closed, and asyncio's take the bytes.
                raise ConnectionResetError("the client is gone")
            self.writer.write(piece)
            await self.writer.drain()
            await asyncio.sleep(0)

    def half_close(self) -> None:
        self.writer.write_eof()

    def close(self) -> None:
        self.writer.close()

    def reset(self) -> None:
        """Sends RST instead of FIN."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def hung_up(self) -> None:
        """Returns when the client has closed or reset the connection; drops data that arrives before."""
        with contextlib.suppress(ConnectionError):
            while await self.reader.read(1 << 16):
                pass
        self.gone.set()


Script = Callable[[Peer], Awaitable[None]]


@dataclass
class RawServer:
    host: str
    port: int
    secure: bool
    peers: list[Peer] = field(default_factory=list)
    errors: list[BaseException] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"{'https' if self.secure else 'http'}://{self.host}:{self.port}"

    @property
    def connections(self) -> int:
        return len(self.peers)


@asynccontextmanager
async def raw_server(script: Script, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[RawServer]:
    tasks: set[asyncio.Task[None]] = set()

    async def serve(peer: Peer) -> None:
        try:
            await script(peer)
        except (asyncio.IncompleteReadError, ConnectionError):
            peer.gone.set()
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            server.errors.append(error)
        finally:
            peer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await peer.writer.wait_closed()
            peer.ended.set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(len(server.peers) + 1, reader, writer)
        server.peers.append(peer)
        task = asyncio.ensure_future(serve(peer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    listener = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls, backlog=1024)
    port = listener.sockets[0].getsockname()[1]
    server = RawServer("localhost" if tls else "127.0.0.1", port, tls is not None)
    try:
        yield server
    finally:
        listener.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await listener.wait_closed()
    assert not server.errors, server.errors


def answer(body: bytes = b"hello", *, head: bytes = b"") -> bytes:
    return b"HTTP/1.1 200 OK\r\n%bcontent-length: %d\r\n\r\n%b" % (head, len(body), body)


def answering(*pieces: bytes) -> Script:
    async def script(peer: Peer) -> None:
        while True:
            await peer.read_request()
            await peer.send(*pieces)

    return script


def answering_once(*pieces: bytes) -> Script:
    async def script(peer: Peer) -> None:
        await peer.read_request()
        await peer.send(*pieces)

    return script
