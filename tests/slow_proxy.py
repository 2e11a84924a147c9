"""A TCP proxy whose server seems to answer late, or that leads to several servers in turn."""

from __future__ import annotations

import itertools
import queue
import socket
import socketserver
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit, urlunsplit

_CHUNK_BYTES = 65_536


class _Proxy(socketserver.ThreadingTCPServer):
    def __init__(self, upstreams: Sequence[tuple[str, int]], seconds: float) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.upstreams = itertools.cycle(upstreams)
        self.seconds = seconds
        self.sockets: set[socket.socket] = set()
        self._thread = threading.Thread(target=self.serve_forever, name="slow proxy")
        self._thread.start()

    def stop(self) -> None:
        self.shutdown()
        self._thread.join()
        for each in list(self.sockets):
            _end(each)
        self.server_close()  # It waits for the threads of the connections.


class _Connection(socketserver.BaseRequestHandler):
    server: _Proxy
    request: socket.socket

    def handle(self) -> None:
        with socket.create_connection(next(self.server.upstreams)) as upstream:
            self.server.sockets |= {self.request, upstream}
            answers: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
            threads = [
                threading.Thread(target=self._read_answers, args=(upstream, answers)),
                threading.Thread(target=self._send_answers, args=(answers,)),
            ]
            for thread in threads:
                thread.start()
            for content in _received(self.request):
                with suppress(OSError):
                    upstream.sendall(content)
            _end(upstream)
            for thread in threads:
                thread.join()
            self.server.sockets -= {self.request, upstream}

    def _read_answers(self, upstream: socket.socket, answers: queue.SimpleQueue[tuple[float, bytes]]) -> None:
        for content in _received(upstream):
            answers.put((time.monotonic() + self.server.seconds, content))
        answers.put((time.monotonic(), b""))

    def _send_answers(self, answers: queue.SimpleQueue[tuple[float, bytes]]) -> None:
        while True:
            at, content = answers.get()
            if not content:
                _end(self.request)
                return
            time.sleep(max(at - time.monotonic(), 0.0))
            with suppress(OSError):
                self.request.sendall(content)


def _received(source: socket.socket) -> Iterator[bytes]:
    with suppress(OSError):
        while content := source.recv(_CHUNK_BYTES):
            yield content


def _end(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


@contextmanager
def slow_proxy(url: str, seconds: float) -> Iterator[str]:
    """Yields an address of the server at `url`, whose every answer arrives `seconds` later."""
    with _proxy([url], seconds) as address:
        yield address


@contextmanager
def proxy_in_turn(*urls: str) -> Iterator[str]:
    """Yields an address that leads each connection to the next of the servers at `urls`, which take one password."""
    with _proxy(urls, 0.0) as address:
        yield address


@contextmanager
def _proxy(urls: Sequence[str], seconds: float) -> Iterator[str]:
    parts = urlsplit(urls[0])
    proxy = _Proxy([(str(one.hostname), int(one.port or 0)) for one in map(urlsplit, urls)], seconds)
    credentials, at, _ = parts.netloc.rpartition("@")
    try:
        yield urlunsplit(parts._replace(netloc=f"{credentials}{at}127.0.0.1:{proxy.server_address[1]}"))
    finally:
        proxy.stop()
