from __future__ import annotations

import io
import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPResponse
from typing import cast

import httpx2

from tests.gateway.service import PROVIDER_SECRET, Gateway
from tests.waiting import TIMEOUT_SECONDS

# The largest case that is sent; a larger one is not tried.
MAX_CASE_BYTES = 2 * 1024 * 1024


@dataclass(frozen=True)
class Sent:
    """`raw` is a whole HTTP request, sent in place of all other fields."""

    method: str = "POST"
    path: str = "/"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    raw: bytes | None = None


@dataclass(frozen=True)
class Answer:
    """`status` is 0 if the connection ended without an HTTP answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Finding(AssertionError):
    """An answer that breaks a rule."""


def exchange(gateway: Gateway, client: httpx2.Client, sent: Sent) -> Answer:
    """Raises Finding if neither an answer nor the end of the connection comes in time."""
    try:
        return _raw(gateway, sent.raw) if sent.raw is not None else _request(gateway, client, sent)
    except (TimeoutError, httpx2.TimeoutException) as error:
        raise Finding(f"no answer in time: {error!r}") from error


def check(answer: Answer, *, allowed_failures: frozenset[int] = frozenset()) -> None:
    """Raises Finding for a failure of the server (other than `allowed_failures`), an error without its envelope, a
    leaked secret, and a header that the sender injected."""
    if answer.status >= 500 and answer.status not in allowed_failures:
        raise Finding(f"status {answer.status}: {answer.body[:500]!r}")
    if PROVIDER_SECRET.encode() in answer.body or PROVIDER_SECRET in repr(answer.headers):
        raise Finding("the answer tells the provider's key")
    if "x-injected" in answer.headers:
        raise Finding("the sender made a header of the answer")
    if b"Traceback (most recent call last)" in answer.body:
        raise Finding("the answer shows a traceback")


def check_envelope(answer: Answer) -> None:
    if answer.status < 400:
        return
    try:
        error = json.loads(answer.body)["error"]
        if not all(isinstance(error[name], str) and error[name] for name in ("message", "type", "code")):
            raise Finding(f"incomplete error: {error!r}")
    except (ValueError, KeyError, TypeError) as problem:
        raise Finding(f"status {answer.status} without the envelope: {answer.body[:300]!r}") from problem
    if error["code"] == "internal_error":
        raise Finding(f"an internal error: {error!r}")


def _request(gateway: Gateway, client: httpx2.Client, sent: Sent) -> Answer:
    try:
        response = client.request(
            sent.method,
            f"{gateway.service.base_url()}{sent.path}",
            headers={**gateway.headers, "x-project-id": gateway.project_id, **sent.headers},
            content=sent.body,
        )
    except (httpx2.RemoteProtocolError, httpx2.WriteError, httpx2.ReadError) as error:
        raise Finding(f"the connection broke: {error!r}") from error
    return Answer(response.status_code, dict(response.headers), response.content)


def _raw(gateway: Gateway, raw: bytes) -> Answer:
    received = b""
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=TIMEOUT_SECONDS) as connection:
        try:
            connection.sendall(raw)
            connection.shutdown(socket.SHUT_WR)
            while piece := connection.recv(1 << 16):
                received += piece
        except (ConnectionResetError, BrokenPipeError):
            pass  # The gateway may cut a refused request short while it is being sent.
    return _first_answer(received)


def _first_answer(received: bytes) -> Answer:
    if not received:
        return Answer(0, {}, b"")
    response = HTTPResponse(cast("socket.socket", _Received(received)))
    try:
        response.begin()
        body = response.read()
    except HTTPException as error:
        raise Finding(f"no HTTP answer: {error!r}, {received[:200]!r}") from error
    return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, body)


class _Received:
    """The part of a socket that the standard library's reader of HTTP answers uses."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, mode: str) -> io.BytesIO:
        return io.BytesIO(self._data)
