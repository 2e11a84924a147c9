"""A web server that serves catalogs to the sync; a test sets its next answers."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

Answer = Callable[[BaseHTTPRequestHandler], None]


@dataclass
class CatalogServer:
    """The server of catalogs. `pages` maps a path to its answer. `requests` lists path and If-None-Match of each
    request."""

    url: str = ""
    pages: dict[str, Answer] = field(default_factory=dict)
    requests: list[tuple[str, str | None]] = field(default_factory=list)

    def serve(self, path: str, content: Any, *, etag: str = "") -> None:
        """Serves `content` unchanged, or as JSON. With an ETag, a client that sends it gets 304."""
        body = content if isinstance(content, bytes) else json.dumps(content).encode()

        def answer(request: BaseHTTPRequestHandler) -> None:
            if etag and request.headers.get("If-None-Match") == etag:
                respond(request, 304, b"", ETag=etag)
                return
            respond(request, 200, body, **({"ETag": etag} if etag else {}))

        self.pages[path] = answer

    def fail(self, path: str, status: int) -> None:
        self.pages[path] = lambda request: respond(request, status, b"<html>sorry</html>")


@contextmanager
def catalog_server(secured: ssl.SSLContext | None = None) -> Iterator[CatalogServer]:
    server = CatalogServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            server.requests.append((self.path, self.headers.get("If-None-Match")))
            server.pages[self.path](self)

        def log_message(self, format: str, *args: Any) -> None:
            """Writes nothing, so that the test's output holds its own lines only."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        if secured is not None:
            http.socket = secured.wrap_socket(http.socket, server_side=True)
        server.url = f"{'http' if secured is None else 'https'}://127.0.0.1:{http.server_port}"
        thread = Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()


def respond(request: BaseHTTPRequestHandler, status: int, body: bytes, **headers: str) -> None:
    request.send_response(status)
    for name, value in ({"Content-Length": str(len(body))} | headers).items():
        request.send_header(name.replace("_", "-"), value)
    request.end_headers()
    request.wfile.write(body)
