"""A service of two workers, one that answers plain requests by plans and one that does not, and what both make of the
same request."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from http.client import HTTPConnection, HTTPResponse
from typing import Any

import msgspec

from tests.fakes.upstream import Received, UpstreamServer
from tests.gateway.conftest import LONG_TIMEOUTS
from tests.gateway.service import Gateway, GatewayService
from tests.gateway.wire import ENDPOINT, bearer
from tests.waiting import TIMEOUT_SECONDS

# These headers of an answer name the request, or count seconds until a provider may be asked again.
_OF_ONE_ANSWER = frozenset({"x-request-id", "retry-after"})
# An answer whose provider does not say when it was made has the gateway's second.
_MADE = re.compile(rb'"created":\d{10}\b')
_OF_ONE_RECORD = frozenset({"request_id", "ts", "latency_ms", "ttft_ms"})
_OF_ONE_ATTEMPT = frozenset({"latency_ms", "offset_us"})


class PlansService(GatewayService):
    """The first of its two workers has plans."""

    application = "tests.gateway.plans.counted:application"

    def __init__(self, **settings: str) -> None:
        super().__init__(workers=2, settings={**LONG_TIMEOUTS, **settings})

    def environment_of(self, port: int) -> dict[str, str]:
        return {**self.environment, "GATEWAY_PLANS": "1" if port == self.ports[0] else "0"}

    @property
    def planned(self) -> tuple[int, int]:
        """Returns the numbers of requests that plans of the two workers have answered."""
        first, second = (self.counts(port)[0] for port in self.ports)
        return first, second

    def counts(self, port: int) -> tuple[int, int, int]:
        """Returns the numbers of requests that plans of a worker have answered, declined and handed over."""
        answered, declined, handed_over = map(int, self.client.get(f"{self.base_url(port)}/planned").text.split())
        return answered, declined, handed_over


@dataclass(frozen=True)
class Seen:
    """What the client, the provider and the request log see of a request, without its ids and times."""

    status: int
    headers: list[tuple[str, str]]
    answer: bytes
    received: list[tuple[str, str, dict[str, str], bytes]]
    record: dict[str, Any]
    logged: tuple[bytes, bytes]


def seen_by(
    gateway: Gateway,
    upstream: UpstreamServer,
    port: int,
    content: bytes,
    headers: Mapping[str, str] | None = None,
    path: str = ENDPOINT,
) -> Seen:
    """Returns what is seen of a request to the worker at this port."""
    upstream.received.clear()
    connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)
    with closing(connection):
        connection.request("POST", path, content, {**bearer(gateway.key), **(headers or {})})
        response = connection.getresponse()
        return seen_in(gateway, upstream, response, response.read())


def seen_in(gateway: Gateway, upstream: UpstreamServer, response: HTTPResponse, answer: bytes) -> Seen:
    """Returns what is seen of a request that was answered so."""
    request_id = response.headers["x-request-id"]
    (entry,) = gateway.service.entries(request_id)
    record = {name: value for name, value in msgspec.to_builtins(entry.record).items() if name not in _OF_ONE_RECORD}
    record["attempts"] = [
        {name: value for name, value in attempt.items() if name not in _OF_ONE_ATTEMPT}
        for attempt in record.get("attempts", ())
    ]
    return Seen(
        response.status,
        [header for header in response.getheaders() if header[0] not in _OF_ONE_ANSWER],
        _MADE.sub(b'"created":0', answer.replace(request_id.encode(), b"ID")),
        [sent(request) for request in upstream.received],
        record,
        (entry.request, _MADE.sub(b'"created":0', entry.response)),
    )


def sent(request: Received) -> tuple[str, str, dict[str, str], bytes]:
    return request.method, request.path, request.headers, request.body


def same(
    gateway: Gateway,
    upstream: UpstreamServer,
    content: bytes,
    *,
    but: frozenset[str] = frozenset(),
    unrecorded: frozenset[str] = frozenset(),
    **options: Any,
) -> tuple[Seen, bool]:
    """Returns what is seen of a request, after a check that it is the same with a plan and without, and whether a plan
    has answered it. `but` are headers of the answer that count requests, `unrecorded` are fields of the record that
    differ from request to request."""
    service = gateway.service
    assert isinstance(service, PlansService)
    before = service.planned
    seen = [seen_by(gateway, upstream, port, content, **options) for port in service.ports]
    with_plans, without = (
        replace(
            one,
            headers=[header for header in one.headers if header[0] not in but],
            record={name: value for name, value in one.record.items() if name not in unrecorded},
        )
        for one in seen
    )
    differ = {name: (value, vars(without)[name]) for name, value in vars(with_plans).items()}
    differ = {name: both for name, both in differ.items() if both[0] != both[1]}
    assert not differ, f"with plans and without: {differ}"
    after = service.planned
    assert after[1] == before[1] == 0
    return with_plans, after[0] > before[0]
