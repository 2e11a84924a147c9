"""An OTLP/HTTP collector for tests: it reads exports with OpenTelemetry's own messages, keeps every post, and answers
as it was told."""

from __future__ import annotations

import gzip
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

PROTOBUF = "application/x-protobuf"


@dataclass(frozen=True)
class Post:
    path: str
    headers: dict[str, str]
    raw: bytes
    request: ExportTraceServiceRequest
    status: int

    @property
    def spans(self) -> list[Span]:
        return [span for group in self.request.resource_spans for scope in group.scope_spans for span in scope.spans]

    @property
    def resource(self) -> dict[str, str]:
        [group] = self.request.resource_spans
        return {one.key: one.value.string_value for one in group.resource.attributes}


@dataclass
class Reply:
    """`before` is called after the post was kept, before the answer is sent."""

    status: int = 200
    body: bytes = b""
    content_type: str = PROTOBUF
    headers: dict[str, str] = field(default_factory=dict)
    before: Callable[[], None] | None = None


def rejecting(spans: int, message: str) -> Reply:
    response = ExportTraceServiceResponse()
    response.partial_success.rejected_spans = spans
    response.partial_success.error_message = message
    return Reply(body=response.SerializeToString())


class Collector:
    """`replies` are given first, in order, then `usual`. `posts` holds every post, `taken` those answered 2xx."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.posts: list[Post] = []
        self.replies: list[Reply] = []
        self.usual = Reply()
        self.lock = threading.Lock()

    @property
    def taken(self) -> list[Post]:
        with self.lock:
            return [post for post in self.posts if 200 <= post.status < 300]

    def arrivals(self) -> Counter[tuple[str, str]]:
        return Counter((span.trace_id.hex(), span.span_id.hex()) for post in self.taken for span in post.spans)

    def spans(self) -> list[Span]:
        return [span for post in self.taken for span in post.spans]


@contextmanager
def collector() -> Iterator[Collector]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        running = Collector(server.server_address[1])
        server.collector = running  # type: ignore[attr-defined]  # the handler finds it there
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield running
        server.shutdown()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        server: Any = self.server
        found: Collector = server.collector
        raw = self.rfile.read(int(self.headers["content-length"]))
        content = gzip.decompress(raw) if self.headers.get("content-encoding") == "gzip" else raw
        request = ExportTraceServiceRequest.FromString(content)
        headers = {name.lower(): value for name, value in self.headers.items()}
        with found.lock:
            reply = found.replies.pop(0) if found.replies else found.usual
            found.posts.append(Post(self.path, headers, raw, request, reply.status))
        if reply.before is not None:
            reply.before()
        self._answer(reply)

    def _answer(self, reply: Reply) -> None:
        try:
            self.send_response(reply.status)
            for name, value in {"content-type": reply.content_type, **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # The sender was killed meanwhile.

    def log_message(self, format: str, *args: Any) -> None:
        """Writes no log."""
