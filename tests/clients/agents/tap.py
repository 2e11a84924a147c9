from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_PIECE = 1 << 16


class Tap(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.port = port
        self.sent: list[bytearray] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Connection(socketserver.BaseRequestHandler):
    server: Tap
    request: socket.socket

    def handle(self) -> None:
        sent = bytearray()
        self.server.sent.append(sent)
        # A program that ends takes its connections with it.
        with contextlib.suppress(ConnectionError), socket.create_connection(("127.0.0.1", self.server.port)) as gateway:
            answers = threading.Thread(target=_pass_on, args=(gateway, self.request), daemon=True)
            answers.start()
            while piece := self.request.recv(_PIECE):
                sent += piece
                gateway.sendall(piece)
            gateway.shutdown(socket.SHUT_WR)
            answers.join()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while piece := source.recv(_PIECE):
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)


@contextmanager
def tapped(port: int) -> Iterator[Tap]:
    with Tap(port) as tap:
        threading.Thread(target=tap.serve_forever, daemon=True).start()
        yield tap
        tap.shutdown()
