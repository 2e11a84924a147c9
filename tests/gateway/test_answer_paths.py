"""The two ways by which a request reaches an endpoint, straight from the parser and through the routing of the ASGI
application, give the same answers."""

from __future__ import annotations

from contextlib import closing
from http.client import HTTPConnection
from typing import Any

import pytest

from tests.fakes import scripted as play
from tests.gateway.conftest import Scripted
from tests.gateway.service import Gateway
from tests.gateway.wire import ENDPOINT, bearer, encoded
from tests.tables.cases import tabled
from tests.waiting import TIMEOUT_SECONDS

# The routing of the application handles requests whose URL is anything but the path alone.
TARGETS = (ENDPOINT, f"{ENDPOINT}?routed=1")

Answer = tuple[int, list[tuple[str, str]], bytes]


def answer_to(gateway: Gateway, target: str, content: bytes, *, method: str = "POST", key: str | None = None) -> Answer:
    """Returns the status, the headers except the request's id, and the body."""
    connection = HTTPConnection("127.0.0.1", gateway.port, timeout=TIMEOUT_SECONDS)
    with closing(connection):
        connection.request(method, target, content, bearer(gateway.key if key is None else key))
        response = connection.getresponse()
        headers = [(name, value) for name, value in response.getheaders() if name != "x-request-id"]
        return response.status, headers, response.read()


def both(gateway: Gateway, content: bytes, **options: Any) -> Answer:
    """Returns the answer that the request gets by both ways, after a check that it is the same."""
    direct, routed = (answer_to(gateway, target, content, **options) for target in TARGETS)
    assert direct == routed
    return direct


@pytest.mark.parametrize("stream", [False, True])
def test_answers__by_both_ways__are_the_same(gateway: Gateway, *, stream: bool) -> None:
    status, _, answer = both(gateway, encoded(stream=stream))

    assert status == 200
    assert (b"[DONE]" in answer) is stream


@tabled
def test_errors__by_both_ways__are_the_same(
    gateway: Gateway, content: bytes, options: dict[str, Any], status: int
) -> None:
    assert both(gateway, content, **options)[0] == status


def test_failure_of_a_provider__by_both_ways__is_the_same(scripted: Scripted) -> None:
    failure = play.status(400)
    gateway, _ = scripted(failure, failure)

    assert both(gateway, encoded())[0] == 400
