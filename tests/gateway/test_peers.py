"""Hostile and unusual peers: heads without end, bodies that do not come, half-closed connections, other protocols.

The tests use raw sockets, because no client library sends such things.
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import pytest

from tests.fakes import scripted as play
from tests.gateway.conftest import Scripted
from tests.gateway.service import Gateway
from tests.gateway.wire import ENDPOINT, body, read_stream
from tests.tables.cases import tabled
from tests.waiting import TIMEOUT_SECONDS

_MANAGED = "/api/llm/settings"
_HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


@dataclass
class RawAnswer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def code(self) -> str:
        error = json.loads(self.body)["error"]
        assert set(error) == {"message", "type", "code"}
        assert self.headers["x-request-id"]
        return str(error["code"])


@contextmanager
def connected(gateway: Gateway) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=TIMEOUT_SECONDS) as connection:
        yield connection


def everything(connection: socket.socket) -> bytes:
    """Returns all bytes until the other side ends; a reset in place of an end fails."""
    return b"".join(iter(lambda: connection.recv(65536), b""))


def answers(raw: bytes) -> list[RawAnswer]:
    """Returns the final answers; interim ones are left out, as a client does."""
    found = []
    while raw:
        head, _, raw = raw.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        status = int(first.split()[1])
        if status < 200:
            continue
        if headers.get("transfer-encoding") == "chunked":
            text, raw = _chunked(raw)
        else:
            length = int(headers["content-length"])
            text, raw = raw[:length], raw[length:]
        found.append(RawAnswer(status, headers, text))
    return found


def _chunked(raw: bytes) -> tuple[bytes, bytes]:
    text = b""
    while True:
        size, _, raw = raw.partition(b"\r\n")
        length = int(size, 16)
        text, raw = text + raw[:length], raw[length + 2 :]
        if not length:
            return text, raw


def answer_to(gateway: Gateway, sent: bytes, *, then_end: bool = False) -> RawAnswer:
    """Returns the one answer to what is sent over a connection of its own."""
    with connected(gateway) as connection:
        connection.sendall(sent)
        if then_end:
            connection.shutdown(socket.SHUT_WR)
        (answer,) = answers(everything(connection))
        return answer


def completion(gateway: Gateway, **fields: object) -> bytes:
    content = json.dumps(body(**fields)).encode()
    head = f"POST {ENDPOINT} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {gateway.key}\r\n"
    return head.encode() + b"content-length: %d\r\n\r\n" % len(content) + content


def with_pauses(*pieces: str | float) -> list[bytes | float]:
    """Yields a provider's stream: texts, and the seconds of silence between them."""
    chunks = [play.chunk({"content": word}) if isinstance(word, str) else word for word in pieces]
    return [play.ROLE, *chunks, play.FINISH, play.USAGE_CHUNK, play.DONE]


def log_since(gateway: Gateway, size: int) -> str:
    with gateway.service.log.open("rb") as file:
        file.seek(size)
        return file.read().decode()


@pytest.mark.parametrize(
    ("head", "status", "code"),
    [
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 70_000, 431, "head_too_large"),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 8_000_000, 431, "head_too_large"),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 70_000 + b"\r\n\r\n", 431, "head_too_large"),
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + b"X: a\r\n" * 200 + b"\r\n", 431, "head_too_large"),
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + b"X: a\r\n" * 100_000 + b"\r\n", 431, "head_too_large"),
        (b"GET /healthz?" + b"a" * 17_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414, "url_too_long"),
        (b"GET /healthz?" + b"a" * 8_000_000, 414, "url_too_long"),
        (b"\r\n" * 40_000, 431, "head_too_large"),
    ],
    ids=["value", "endless value", "ended value", "201 headers", "many headers", "url", "endless url", "blank lines"],
)
def test_head__beyond_the_limits__is_refused_and_closed(gateway: Gateway, head: bytes, status: int, code: str) -> None:
    with connected(gateway) as connection:
        try:
            connection.sendall(head)
        except (BrokenPipeError, ConnectionResetError):
            # The gateway closes a connection before it has read megabytes of a head.
            assert len(head) > 1_000_000
            return
        (answer,) = answers(everything(connection))

    assert (answer.status, answer.code) == (status, code)
    assert answer.headers["connection"] == "close"


def test_head__just_within_the_limits__is_served(gateway: Gateway) -> None:
    many = b"".join(b"X-%d: a\r\n" % number for number in range(197))
    for head in (b"X: " + b"a" * 65_000 + b"\r\n", many, b"X: " + b"a" * 100 + b"\r\n"):
        answer = answer_to(gateway, b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + head + b"\r\n")
        assert answer.status == 200


def test_head__small_before_a_large_body_in_one_piece__is_served(gateway: Gateway) -> None:
    sent = completion(gateway, messages=[{"role": "user", "content": "x" * 900_000}])
    assert answer_to(gateway, sent, then_end=True).status == 200


def test_trailers__of_a_chunked_body__are_no_headers_and_no_way_around_the_limit(gateway: Gateway) -> None:
    head = f"POST {ENDPOINT} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n".encode()
    content = json.dumps(body()).encode()
    chunk = b"%x\r\n%s\r\n0\r\n" % (len(content), content)

    late = answer_to(gateway, head + chunk + f"authorization: Bearer {gateway.key}\r\n\r\n".encode(), then_end=True)
    assert (late.status, late.code) == (401, "missing_api_key")

    with connected(gateway) as connection:
        connection.sendall(head.replace(b"host: x", f"host: x\r\nauthorization: Bearer {gateway.key}".encode()))
        connection.sendall(chunk)
        connection.sendall(b"x: " + b"a" * 400_000)
        endless = answers(everything(connection))
    assert [answer.status for answer in endless] in ([431], [200])


def test_slow_peers__on_every_path__are_given_up_while_others_are_served(brisk_scripted: Scripted) -> None:
    gateway, _ = brisk_scripted(play.answer())
    key = f"authorization: Bearer {gateway.key}\r\nx-project-id: {gateway.project_id}\r\n"
    unended = f"HTTP/1.1\r\nHost: localhost\r\n{key}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{"
    slow = {
        "nothing": (b"", b""),
        "head": (b"GET /healthz HTTP/1.1\r\nHost: x\r\n", b"408"),
        "head after an answer": (_HEALTH + b"GET /healthz HTTP/1.1\r\nHost", b"200"),
        "management": (f"PUT {_MANAGED} {unended}".encode(), b"408"),
        "admin": (b"POST /admin/login/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\na", b"408"),
        "telemetry": (f"POST /api/otlp/v1/traces {unended}".encode(), b"408"),
        "gateway": (f"POST {ENDPOINT} {unended}".encode(), b"408"),
        "refused by the gateway": (f"POST {ENDPOINT} {unended.replace(gateway.key, 'no')}".encode(), b"401"),
    }
    with ExitStack() as stack:
        connections = {name: stack.enter_context(connected(gateway)) for name in slow}
        for name, (sent, _) in slow.items():
            connections[name].sendall(sent)
        connections["head after an answer"].sendall(b": x")
        assert gateway.post(body()).status_code == 200
        for name, (_, status) in slow.items():
            raw = everything(connections[name])
            assert raw[9:12] == status, (name, raw)
            if status == b"408":
                (answer,) = answers(raw)
                assert answer.code == "request_timeout", name


def test_body__that_takes_longer_than_a_head_may__is_no_reason_to_cut_a_stream(brisk_scripted: Scripted) -> None:
    """The stream lasts longer than all those limits, and its connection serves the next request."""
    pieces = with_pauses("a", 2.0, "b", 2.5, "c")
    gateway, _ = brisk_scripted(play.stream(*pieces), play.answer())
    with connected(gateway) as connection:
        connection.sendall(completion(gateway, stream=True))
        raw = b""
        while not raw.endswith(b"0\r\n\r\n"):
            piece = connection.recv(65536)
            assert piece
            raw += piece
        connection.sendall(completion(gateway))
        connection.shutdown(socket.SHUT_WR)
        (second,) = answers(everything(connection))
    (first,) = answers(raw)

    assert read_stream(first.body).text == "abc"
    assert second.status == 200


_HANDSHAKE = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n"


@pytest.mark.parametrize("path", ["/", ENDPOINT, "/api/gateway/v1/responses", "/admin/login/", _MANAGED])
def test_websocket__on_a_path_that_exists__asks_for_http_in_one_line(gateway: Gateway, path: str) -> None:
    before = gateway.service.log.stat().st_size
    answer = answer_to(gateway, f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{_HANDSHAKE}\r\n".encode())

    assert (answer.status, answer.code) == (426, "websocket_unsupported")
    assert answer.headers["upgrade"] == "HTTP/1.1"
    (line,) = log_since(gateway, before).splitlines()
    assert "request.refused status=426 code=websocket_unsupported client=127.0.0.1" in line


def test_websocket__with_a_request_behind_it__gets_one_answer(gateway: Gateway) -> None:
    answer = answer_to(gateway, f"GET / HTTP/1.1\r\nHost: localhost\r\n{_HANDSHAKE}\r\n".encode() + _HEALTH)
    assert answer.status == 426


@pytest.mark.parametrize("path", ["/nowhere", "/api/gateway/v1/nothing"])
def test_websocket__on_no_path__is_not_found(gateway: Gateway, path: str) -> None:
    answer = answer_to(gateway, f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{_HANDSHAKE}\r\n".encode())
    assert (answer.status, answer.code) == (404, "not_found")


def test_websocket__offered_with_a_post__is_passed_over(gateway: Gateway) -> None:
    """A handshake is a GET (RFC 6455, section 4.1)."""
    content = completion(gateway).replace(b"host: x\r\n", f"host: x\r\n{_HANDSHAKE}".encode())
    assert answer_to(gateway, content, then_end=True).status == 200


_OFFER = b"Upgrade: h2c\r\nConnection: keep-alive, Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk\r\n"


@pytest.mark.parametrize("apart", [False, True])
def test_http2_upgrade__offered_with_a_request__is_passed_over_and_the_body_is_no_request(
    gateway: Gateway, apart: bool
) -> None:
    """Java's client offers the upgrade in every first request over plain HTTP."""
    head, content = completion(gateway).replace(b"host: x\r\n", b"host: x\r\n" + _OFFER).split(b"\r\n\r\n")
    pieces = [head + b"\r\n\r\n", content + _HEALTH] if apart else [head + b"\r\n\r\n" + content + _HEALTH]
    with connected(gateway) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in pieces:
            connection.sendall(piece)
        connection.shutdown(socket.SHUT_WR)
        assert [answer.status for answer in answers(everything(connection))] == [200, 200]


def test_http2_upgrade__many_in_one_piece__are_refused_behind_the_first(gateway: Gateway) -> None:
    offer = _HEALTH.replace(b"Host: localhost\r\n", b"Host: localhost\r\n" + _OFFER)
    with connected(gateway) as connection:
        connection.sendall(offer * 50)
        assert [answer.status for answer in answers(everything(connection))] == [200]


def test_connect__to_another_host__is_refused(gateway: Gateway) -> None:
    answer = answer_to(gateway, b"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n")
    assert (answer.status, answer.code) == (400, "malformed_request")


@pytest.mark.parametrize("path", ["/healthz", "/api/schema/", "/admin/login/", "/api/llm/keys"])
def test_half_closed__after_the_request__gets_its_answer(gateway: Gateway, path: str) -> None:
    headers = f"Host: localhost\r\nAuthorization: Bearer {gateway.key}\r\nX-Project-Id: {gateway.project_id}\r\n"
    answer = answer_to(gateway, f"GET {path} HTTP/1.1\r\n{headers}\r\n".encode(), then_end=True)
    assert answer.status == 200


@pytest.mark.parametrize("stream", [False, True])
def test_half_closed__while_the_provider_thinks__gets_its_answer(scripted: Scripted, stream: bool) -> None:
    pieces = with_pauses(1.0, "a", 1.0, "b")
    thinking = play.stream(*pieces) if stream else play.answer(delay=1.0)
    gateway, _ = scripted(thinking)

    answer = answer_to(gateway, completion(gateway, stream=stream), then_end=True)

    assert answer.status == 200
    if stream:
        assert read_stream(answer.body).text == "ab"


def test_pipelined__many_and_then_half_closed__are_all_answered(gateway: Gateway) -> None:
    with connected(gateway) as connection:
        connection.sendall(_HEALTH * 2000)
        connection.shutdown(socket.SHUT_WR)
        found = answers(everything(connection))

    assert [answer.status for answer in found] == [200] * 2000


def test_pipelined__garbage_behind_good_requests__does_not_cost_their_answers(gateway: Gateway) -> None:
    with connected(gateway) as connection:
        connection.sendall(completion(gateway) + _HEALTH + b"NO SUCH THING\r\n\r\n")
        found = answers(everything(connection))

    assert [answer.status for answer in found] == [200, 200]


@tabled
def test_request__ambiguous__is_refused_and_closed(gateway: Gateway, sent: bytes) -> None:
    before = gateway.service.log.stat().st_size
    head = f"POST {ENDPOINT} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {gateway.key}\r\n".encode()

    answer = answer_to(gateway, head + sent + _HEALTH)

    assert (answer.status, answer.code) == (400, "malformed_request")
    assert re.findall(r"request\.refused status=(\d+)", log_since(gateway, before)) == ["400"]


_TARGETS = ["POST /api/gateway/v1/chat/completions", "GET /healthz", "GET /api/llm/settings", "PUT /admin/login/"]


@pytest.mark.parametrize("target", _TARGETS)
@tabled
def test_host__missing_doubled_or_none__is_refused_on_every_path(
    gateway: Gateway, target: str, version: str, hosts: list[str], naming: str
) -> None:
    """RFC 9112, section 3.2."""
    lines = [f"{target} HTTP/{version}", *(f"Host: {host}" for host in hosts), f"Authorization: Bearer {gateway.key}"]
    answer = answer_to(gateway, "\r\n".join([*lines, "", ""]).encode())

    assert (answer.status, answer.code) == (400, "malformed_request")
    assert naming in json.loads(answer.body)["error"]["message"]


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8000", "127.0.0.1", "[::1]:8000", "my_gateway", "any.example"]
)
def test_host__of_any_form__is_served_with_a_key(gateway: Gateway, host: str) -> None:
    lines = [f"GET /api/gateway/v1/models HTTP/1.1\r\nHost: {host}", f"Authorization: Bearer {gateway.key}"]

    assert answer_to(gateway, "\r\n".join([*lines, "Connection: close", "", ""]).encode()).status == 200


def test_host__missing_in_http_1_0__is_served(gateway: Gateway) -> None:
    assert answer_to(gateway, b"GET /healthz HTTP/1.0\r\n\r\n").status == 200


@pytest.mark.parametrize("path", ["/api/gateway/v1/models", "/healthz", "/api/llm/settings"])
@tabled
def test_url__of_the_absolute_form__has_the_host_of_the_header(
    gateway: Gateway, path: str, url: str, host: str, status: int
) -> None:
    """RFC 9112, section 3.2.2: the URL's host is the one that counts, so that a request with two hosts is refused."""
    head = f"GET {url}{path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {gateway.key}\r\n"
    head += f"X-Project-Id: {gateway.project_id}\r\nConnection: close\r\n\r\n"

    assert answer_to(gateway, head.encode()).status == status


@pytest.mark.parametrize("path", [ENDPOINT, "/api/llm/prompts/check"])
@pytest.mark.parametrize(("headers", "trailers", "status"), [(10, 150, 200), (10, 201, 431), (150, 100, 431)])
def test_trailers__of_a_chunked_body__count_as_headers(
    gateway: Gateway, path: str, headers: int, trailers: int, status: int
) -> None:
    content = json.dumps(body() if path == ENDPOINT else {"system_prompt": "x"}).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {gateway.key}\r\n"
    head += f"X-Project-Id: {gateway.project_id}\r\nContent-Type: application/json\r\n"
    head += "Transfer-Encoding: chunked\r\n" + "".join(f"x-{number}: a\r\n" for number in range(headers))
    chunk = b"%x\r\n%s\r\n0\r\n" % (len(content), content)
    behind = "".join(f"x-{number}: a\r\n" for number in range(trailers)) + "\r\n"

    answer = answer_to(gateway, head.encode() + b"\r\n" + chunk + behind.encode(), then_end=status == 200)

    assert answer.status == status
    assert status == 200 or answer.code == "head_too_large"


def test_trailers__of_two_requests_of_a_connection__are_counted_apart(gateway: Gateway) -> None:
    trailers = "".join(f"x-{number}: a\r\n" for number in range(150)).encode()
    request = b"POST /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + trailers + b"\r\n"
    with connected(gateway) as connection:
        connection.sendall(request * 3)
        connection.shutdown(socket.SHUT_WR)
        found = answers(everything(connection))

    assert [answer.status for answer in found] == [200] * 3
