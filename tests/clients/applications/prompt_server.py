from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.clients.applications.answers import JSON, Answered, check_all, failure
from tests.waiting import TIMEOUT_SECONDS

KEPT = "private, max-age=30, stale-while-revalidate=300, stale-if-error=86400"


@dataclass(frozen=True)
class Received:
    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class PromptServer:
    base_url: str = ""
    received: list[Received] = field(default_factory=list)
    answered: list[Answered] = field(default_factory=list)
    text: str = "Be kind."
    cache_control: str = KEPT
    behaviour: str = "right"
    # Answers of the behaviour `held` are sent once this is set.
    release: threading.Event = field(default_factory=threading.Event)

    @property
    def prompt(self) -> dict[str, Any]:
        return {
            "name": "support",
            "config_id": "0000000c-0000-4000-8000-000000000000",
            "version_id": "0000000d-0000-4000-8000-000000000000",
            "version_number": 3,
            "label": None,
            "model": "gpt-4o",
            "temperature": 0.5,
            "max_tokens": None,
            "tools": [],
            "response_format": None,
            "variables": [{"name": "who", "type": "string", "required": False}],
            "messages": [{"role": "system", "content": self.text}],
            "system_prompt": self.text,
            "rendered": False,
            "rollout": None,
            "attributes": {"gen_ai.prompt.name": "support"},
            "a_field_of_tomorrow": 1,
        }


def serve(server: PromptServer, handler: BaseHTTPRequestHandler) -> None:
    length = int(handler.headers.get("Content-Length") or 0)
    body = json.loads(handler.rfile.read(length)) if length else None
    headers = {name.lower(): value for name, value in handler.headers.items()}
    server.received.append(Received(handler.command, handler.path, headers, body))
    BEHAVIOURS[server.behaviour](server, handler)


def send(handler: BaseHTTPRequestHandler, status: int, raw: bytes, **headers: str) -> None:
    handler.send_response(status)
    for name, value in {"content-length": str(len(raw)), **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(raw)


def _answer(server: PromptServer, handler: BaseHTTPRequestHandler, status: int, raw: bytes, **headers: str) -> None:
    server.answered.append(Answered(handler.command, handler.path, status, raw))
    send(handler, status, raw, content_type=JSON, **headers)


def _right(server: PromptServer, handler: BaseHTTPRequestHandler) -> None:
    etag = f'"{server.text}"'
    headers = {"etag": etag, "cache_control": server.cache_control}
    if handler.headers.get("If-None-Match") == etag:
        _answer(server, handler, 304, b"", **headers)
    else:
        _answer(server, handler, 200, json.dumps(server.prompt).encode(), **headers)


def _held(server: PromptServer, handler: BaseHTTPRequestHandler) -> None:
    server.release.wait(TIMEOUT_SECONDS)
    _right(server, handler)


def _refused(status: int, code: str) -> Callable[[PromptServer, BaseHTTPRequestHandler], None]:
    raw = json.dumps(failure("No.", code, "api_error")).encode()
    return lambda server, handler: _answer(server, handler, status, raw)


def _fixed(status: int, raw: bytes, **headers: str) -> Callable[[PromptServer, BaseHTTPRequestHandler], None]:
    return lambda _, handler: send(handler, status, raw, **headers)


def _truncated(server: PromptServer, handler: BaseHTTPRequestHandler) -> None:
    raw = json.dumps(server.prompt).encode()
    send(handler, 200, raw[:40], content_length=str(len(raw)))


def _redirected(server: PromptServer, handler: BaseHTTPRequestHandler) -> None:
    send(handler, 302, b"", location=f"{server.base_url}/elsewhere")


# None of these is an answer that an application can use.
WRONG = (
    "error",
    "error_page",
    "proxy_page",
    "html",
    "array",
    "no_prompt",
    "not_a_list",
    "truncated",
    "empty",
    "redirect",
)
BEHAVIOURS: dict[str, Callable[[PromptServer, BaseHTTPRequestHandler], None]] = {
    "right": _right,
    "held": _held,
    "error": _refused(503, "service_unavailable"),
    "error_page": _fixed(500, b"<h1>Oops</h1>"),
    "proxy_page": _fixed(404, b"<h1>No such host</h1>"),
    "html": _fixed(200, b"<h1>Sign in</h1>"),
    "array": _fixed(200, b"[1]"),
    "no_prompt": _fixed(200, b"{}"),
    "not_a_list": _fixed(
        200, b'{"name": "a", "version_number": 1, "messages": 1, "system_prompt": "", "attributes": {}}'
    ),
    "truncated": _truncated,
    "empty": _fixed(200, b""),
    "redirect": _redirected,
    "unknown": _refused(404, "prompt_config_not_found"),
    "missing": _refused(422, "missing_variable"),
    "revoked": _refused(401, "invalid_api_key"),
    "busy": _fixed(429, b"Too many requests"),
}


@contextmanager
def prompt_server() -> Iterator[PromptServer]:
    server = PromptServer()

    class Handler(BaseHTTPRequestHandler):
        do_GET = do_POST = lambda self: serve(server, self)

        def log_message(self, *_: Any) -> None:
            """Writes no log."""

    class Listening(ThreadingHTTPServer):
        # A thousand callers that did not share a read could all connect.
        request_queue_size = 1000

        def handle_error(self, *_: Any) -> None:
            """Writes nothing: clients that do not wait any more are a part of the tests."""

    with Listening(("127.0.0.1", 0), Handler) as listening:
        listening.daemon_threads = True
        server.base_url = f"http://127.0.0.1:{listening.server_address[1]}"
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.release.set()
            listening.shutdown()
            thread.join()
    check_all(server.answered)
