"""Requests one after the other on a connection, whose headers the worker knows from the request before."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from typing import Any

import pytest

from tests.fakes.scripted import ScriptedServer, answer
from tests.gateway.plans.both import PlansService, same
from tests.gateway.service import Gateway
from tests.gateway.wire import ENDPOINT, bearer, body
from tests.waiting import TIMEOUT_SECONDS

SCRIPT = "connections"
CONTENT = json.dumps(body()).encode()


@pytest.fixture(scope="module")
def gateway(plans: PlansService) -> Iterator[Gateway]:
    with ScriptedServer() as server:
        server.play(SCRIPT, answer())
        made = plans.new_project(base_urls={"openai": server.base_url(SCRIPT)})
        made.upstream = server
        same(made, server, CONTENT)
        yield made


def in_order(gateway: Gateway) -> list[tuple[dict[str, str], bytes]]:
    """Returns the headers and the body of each request."""
    own = bearer(gateway.key)
    other = bearer(gateway.service.new_project(base_urls={"openai": gateway.upstream.base_url(SCRIPT)}).key)
    streamed = json.dumps(body(stream=True)).encode()
    return [
        (own, CONTENT),
        (own, CONTENT),
        ({**own, "x-svc-session-id": "a"}, CONTENT),
        ({**own, "x-svc-session-id": "a", "x-svc-user-id": "u"}, CONTENT),
        ({**own, "x-svc-session-id": "b", "x-request-id": "mine"}, CONTENT),
        (own, CONTENT),
        (own, CONTENT + b" "),
        (other, CONTENT),
        (other, CONTENT),
        (bearer("wrong"), CONTENT),
        ({}, CONTENT),
        ({}, CONTENT),
        ({**own, "x-project-id": "nobody"}, CONTENT),
        ({**own, "cache-control": "no-cache"}, CONTENT),
        ({**own, "cache-control": "no-cache"}, CONTENT),
        ({**own, "x-svc-force-variant": "none"}, CONTENT),
        (own, b"{"),
        (own, streamed),
        ({"x-api-key": gateway.key}, CONTENT),
        (own, CONTENT),
    ]


def seen_in_order(gateway: Gateway, port: int, requests: list[tuple[dict[str, str], bytes]]) -> list[Any]:
    """Returns the status, the id of the client and the sender on record of each request on one connection."""
    found = []
    with closing(HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)) as connection:
        for headers, content in requests:
            connection.request("POST", ENDPOINT, content, headers)
            response = connection.getresponse()
            response.read()
            senders = [
                (one.record.project_id, one.record.session_id, one.record.user_id, one.record.api_key_id)
                for one in gateway.service.spooled.entries()
                if one.record.request_id == response.headers["x-request-id"]
            ]
            found.append((response.status, response.headers["x-client-request-id"], senders))
    return found


def test_requests__whose_headers_change__are_each_their_own(gateway: Gateway) -> None:
    requests = in_order(gateway)
    service = gateway.service
    assert isinstance(service, PlansService)
    before = service.planned[0]

    seen = [seen_in_order(gateway, port, requests) for port in service.ports]

    assert seen[0] == seen[1]
    assert [status for status, _, _ in seen[0]].count(200) == 14
    assert service.planned[0] > before + 5


def test_key__that_is_revoked__is_refused_on_the_connection_that_knows_it(gateway: Gateway) -> None:
    key = gateway.service.make_key(gateway.project_id)
    with closing(HTTPConnection("127.0.0.1", gateway.port, timeout=TIMEOUT_SECONDS)) as connection:

        def status() -> int:
            connection.request("POST", ENDPOINT, CONTENT, bearer(key))
            response = connection.getresponse()
            response.read()
            return response.status

        assert [status() for _ in range(3)] == [200] * 3
        gateway.service.revoke_key(key)

        assert gateway.service.until(status, lambda found: found != 200) == 401


@pytest.mark.parametrize("hosts", [[], ["x", "y"], ["a b"]], ids=["none", "two", "no_host"])
def test_host__that_is_wrong_behind_good_requests__is_refused(gateway: Gateway, hosts: list[str]) -> None:
    def request(hosts: list[str]) -> bytes:
        lines = [f"POST {ENDPOINT} HTTP/1.1", *(f"host: {host}" for host in hosts)]
        lines += [f"authorization: Bearer {gateway.key}", f"content-length: {len(CONTENT)}", "", ""]
        return "\r\n".join(lines).encode() + CONTENT

    with socket.create_connection(("127.0.0.1", gateway.port), timeout=TIMEOUT_SECONDS) as connection:
        for _ in range(2):
            connection.sendall(request(["x"]))
            assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        connection.sendall(request(hosts))
        assert connection.recv(65536).startswith(b"HTTP/1.1 400")
