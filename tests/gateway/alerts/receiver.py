"""A receiver of webhooks for tests: it answers as it was set up and keeps what it got."""

from __future__ import annotations

import hashlib
import hmac
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, ClassVar

TOKEN = "SECRET-IN-URL"


class Receiver(BaseHTTPRequestHandler):
    statuses: ClassVar[list[int]] = []
    received: ClassVar[list[tuple[dict[str, str], bytes]]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.received.append(({name.lower(): value for name, value in self.headers.items()}, body))
        self.send_response(self.statuses.pop(0) if self.statuses else 200)
        self.send_header("location", "/elsewhere")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Writes no log."""


@contextmanager
def receiver_at() -> Iterator[str]:
    """Yields the address of a running receiver, which holds a token."""
    with HTTPServer(("127.0.0.1", 0), Receiver) as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{running.server_address[1]}/alerts?token={TOKEN}"
        running.shutdown()
        thread.join()


def verified(headers: dict[str, str], body: bytes, secret: str) -> bool:
    """Returns whether the message is genuine, by the steps that docs/limits.md gives to receivers."""
    parts = dict(part.split("=", 1) for part in headers["x-svc-signature"].split(","))
    expected = hmac.new(secret.encode(), parts["t"].encode() + b"." + body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected, parts["v1"])
