"""The sample for HAProxy, as it is but for addresses, the certificate and how many connections it has file descriptors
for: HAProxy takes it, and passes a stream event by event over TLS."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import requests
import trustme

from tests.fleet.servers import haproxy
from tests.live.service import ROOT
from tests.services import START_SECONDS
from tests.waiting import TIMEOUT_SECONDS, wait_until

_SAMPLE = ROOT / "deploy" / "proxies" / "haproxy.cfg"


class Upstream(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.released = threading.Event()
        self.seen: list[dict[str, str]] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Upstream

    def do_GET(self) -> None:
        if self.path == "/readyz":
            self.send_response(200)
            # Without a body: HAProxy's check leaves as soon as it has seen the status.
            self.send_header("content-length", "0")
            self.end_headers()
            return
        self.server.seen.append(dict(self.headers))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for event in (b"data: first\n\n", b"data: second\n\n"):
            self.wfile.write(event)
            self.wfile.flush()
            self.server.released.wait(START_SECONDS)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    server = Upstream()
    yield server
    server.released.set()
    server.shutdown()
    server.server_close()


def test_haproxy__sample__passes_a_stream_event_by_event_and_says_who_speaks_tls(
    folder: Path, upstream: Upstream
) -> None:
    authority = trustme.CA()
    certificates = folder / "certificates"
    certificates.mkdir()
    authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(certificates / "gateway.pem")
    authority.cert_pem.write_to_path(folder / "authority.pem")
    text = _SAMPLE.read_text(encoding="utf-8")
    for address in ("10.0.0.11:8000", "10.0.0.12:8000", "10.0.0.13:8000"):
        assert address in text
        text = text.replace(address, f"127.0.0.1:{upstream.server_port}")
    text = text.replace("bind :443", "bind 127.0.0.1:{port}").replace("/etc/haproxy/certificates/", f"{certificates}/")
    text = text.replace("maxconn 20000", "maxconn 100")

    with haproxy(folder / "haproxy", text) as proxy, requests.Session() as client:
        # The environment may name other authorities, which would come before this one.
        client.trust_env, client.verify = False, str(folder / "authority.pem")
        url = f"https://localhost:{proxy.port}"
        wait_until(lambda: client.get(f"{url}/readyz", timeout=TIMEOUT_SECONDS).ok, what="a host behind HAProxy")
        sent = {"X-Forwarded-For": "198.51.100.7", "X-Forwarded-Proto": "http"}
        with client.get(f"{url}/stream", headers=sent, stream=True, timeout=TIMEOUT_SECONDS) as answer:
            events = answer.iter_lines(chunk_size=1)
            # The second event does not leave the host before the first one is here.
            assert next(events) == b"data: first"
            upstream.released.set()
            assert [line for line in events if line] == [b"data: second"]

    (headers,) = upstream.seen
    assert {name.lower(): value for name, value in headers.items() if name.lower().startswith("x-forwarded")} == {
        "x-forwarded-proto": "https",
        "x-forwarded-for": "127.0.0.1",
    }
