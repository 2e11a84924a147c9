from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from config.web.protocol import BoundedProtocol
from gateway.protocol.reply import RESPONSE_WRITER
from tests.config.client import Client
from tests.tables.cases import tabled

PATH = "/api/gateway/v1/chat/completions"
HEADERS = [(b"content-type", b"text/plain"), (b"content-length", b"2")]

Endpoint = Callable[[Any, Any, Any], Awaitable[None]]


class Served:
    """A connection to an application with one direct endpoint. `seen` has each request's scope with the name of its
    receiver, `messages` what the requests received."""

    def __init__(
        self, endpoint: Endpoint | None = None, *, root_path: str = "", concurrency: int | None = None
    ) -> None:
        self.seen: list[tuple[str, dict[str, Any]]] = []
        self.messages: list[dict[str, Any]] = []
        self._endpoint = endpoint or self.answer
        self.direct = {PATH.encode(): self._direct}
        self.direct_patterns = ((re.compile(rb"/models/[^:]+:call(?:\?.*)?"), self._direct),)
        config = uvicorn.Config(
            self,
            http=BoundedProtocol,
            ws="none",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            root_path=root_path,
            limit_concurrency=concurrency,
        )
        config.load()
        self.client = Client()
        self.protocol = BoundedProtocol(config, ServerState(), {})
        self.protocol.connection_made(self.client)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.seen.append(("application", scope))
        await self._endpoint(scope, receive, send)

    async def _direct(self, scope: Any, receive: Any, send: Any) -> None:
        self.seen.append(("endpoint", scope))
        await self._endpoint(scope, receive, send)

    async def answer(self, scope: Any, receive: Any, send: Any) -> None:
        while not self.messages or self.messages[-1].get("more_body"):
            self.messages.append(await receive())
        self.messages[-1].setdefault("more_body", False)
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        await send({"type": "http.response.body", "body": b"ok"})

    async def request(self, *pieces: bytes) -> bytes:
        for piece in pieces:
            self.protocol.data_received(piece)
            await asyncio.sleep(0)
        await asyncio.gather(*self.protocol.tasks)
        return b"".join(self.client.written)


def post(
    body: bytes = b"{}", *, target: str = PATH, method: str = "POST", version: str = "1.1", more: str = ""
) -> bytes:
    head = f"{method} {target} HTTP/{version}\r\nHost: gateway\r\n{more}Content-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def test_post__to_a_path_of_an_endpoint__is_not_routed() -> None:
    served = Served()

    answer = await served.request(post(b'{"a":1}'))

    ((name, scope),) = served.seen
    assert name == "endpoint"
    assert (scope["method"], scope["path"]) == ("POST", PATH)
    assert scope["headers"] == [(b"host", b"gateway"), (b"content-length", b"7")]
    assert served.messages == [{"type": "http.request", "body": b'{"a":1}', "more_body": False}]
    assert answer == b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\nok"


@pytest.mark.parametrize("target", ["/models/a%2Fb:call", "/models/a/b:call?alt=sse"])
async def test_post__to_a_path_that_names_a_model__is_not_routed(target: str) -> None:
    served = Served()

    await served.request(post(target=target))

    ((name, scope),) = served.seen
    assert (name, scope["path"]) == ("endpoint", target)


@tabled
async def test_request__of_any_other_form__is_routed(request_: bytes) -> None:
    served = Served()

    answer = await served.request(request_)

    assert [name for name, _ in served.seen] == ["application"]
    assert answer.endswith(b"\r\n\r\nok")


async def test_offer_of_another_protocol__is_passed_over() -> None:
    served = Served()

    offer = "Connection: upgrade, http2-settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAAA\r\n"
    answer = await served.request(post(more=offer))

    ((name, scope),) = served.seen
    assert name == "endpoint"
    assert b"upgrade" not in dict(scope["headers"])
    assert answer.endswith(b"\r\n\r\nok")


@pytest.mark.parametrize("options", [{"root_path": "/behind"}, {"concurrency": 10}])
async def test_request__to_a_server_with_more_to_do__is_routed(options: dict[str, Any]) -> None:
    served = Served(**options)

    await served.request(post())

    assert [name for name, _ in served.seen] == ["application"]


async def test_body__in_pieces__arrives_whole() -> None:
    served = Served()
    whole = post(b"x" * 100)

    await served.request(whole[:40], whole[40:-60], whole[-60:-20], whole[-20:])

    assert b"".join(message["body"] for message in served.messages) == b"x" * 100
    assert [message["more_body"] for message in served.messages][-1] is False


async def test_body__that_the_endpoint_does_not_read__pauses_the_client() -> None:
    read = asyncio.Event()
    served = Served()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        await read.wait()
        await served.answer(scope, receive, send)

    served._endpoint = slow
    whole = post(b"x" * 200_000)
    served.protocol.data_received(whole[:100_000])
    assert served.client.is_paused

    read.set()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not served.client.is_paused
    await served.request(whole[100_000:])

    assert sum(len(message["body"]) for message in served.messages) == 200_000


async def test_requests__one_after_the_other__share_the_connection() -> None:
    served = Served()

    await served.request(post())
    served.messages.clear()
    answer = await served.request(post())

    assert answer.count(b"HTTP/1.1 200 OK") == 2
    assert not served.client.is_closed


async def test_requests__sent_at_once__are_answered_in_order() -> None:
    order: list[bytes] = []

    async def endpoint(scope: Any, receive: Any, send: Any) -> None:
        body = (await receive())["body"]
        order.append(body)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1")]})
        await send({"type": "http.response.body", "body": body})

    served = Served(endpoint)
    served.protocol.data_received(post(b"1") + post(b"2", target=PATH + "?a=1") + post(b"3"))
    while served.protocol.tasks:
        await asyncio.gather(*served.protocol.tasks)

    assert order == [b"1", b"2", b"3"]
    assert [piece[-1:] for piece in served.client.written] == [b"1", b"2", b"3"]


async def test_client__that_waits_for_100_continue__gets_it_before_its_body() -> None:
    served = Served()
    head, body = post(b"body", more="Expect: 100-continue\r\n").split(b"\r\n\r\n")

    answer = await served.request(head + b"\r\n\r\n", body)

    assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK")
    assert served.messages[-1]["body"] == b"body"


async def test_client__that_ends_the_connection__gets_its_answer_and_the_end() -> None:
    served = Served()

    answer = await served.request(post(more="Connection: close\r\n"))

    assert b"connection: close" in answer
    assert answer.endswith(b"ok")
    assert served.client.is_closed


async def test_client__that_closes_its_half__gets_its_answer() -> None:
    read = asyncio.Event()
    served = Served()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        await read.wait()
        await served.answer(scope, receive, send)

    served._endpoint = slow
    served.protocol.data_received(post())
    assert served.protocol.eof_received()
    read.set()
    await asyncio.gather(*served.protocol.tasks)

    assert served.client.written[0] == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert served.client.written[-1].endswith(b"ok")


async def test_client__that_leaves__is_reported_to_the_endpoint() -> None:
    messages: list[str] = []

    async def endpoint(scope: Any, receive: Any, send: Any) -> None:
        for _ in range(2):
            messages.append((await receive())["type"])

    served = Served(endpoint)
    served.protocol.data_received(post())
    await asyncio.sleep(0)
    served.protocol.connection_lost(None)
    await asyncio.gather(*served.protocol.tasks)

    assert messages == ["http.request", "http.disconnect"]


async def test_endpoint__that_fails__answers_500() -> None:
    async def endpoint(scope: Any, receive: Any, send: Any) -> None:
        raise RuntimeError

    served = Served(endpoint)

    answer = await served.request(post())

    assert answer.startswith(b"HTTP/1.1 500 ")
    assert served.client.is_closed


async def whole(headers: list[tuple[bytes, bytes]], *, more: str = "") -> tuple[bool, bytes]:
    """Returns whether the answer was written at once, and what the client got before anything else was sent."""
    found: list[tuple[bool, bytes]] = []

    async def endpoint(scope: Any, receive: Any, send: Any) -> None:
        at_once = scope["extensions"][RESPONSE_WRITER].write_whole(200, headers, b"ok")
        found.append((at_once, b"".join(served.client.written)))
        if not at_once:
            await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            await send({"type": "http.response.body", "body": b"ok"})

    served = Served(endpoint)
    await served.request(post(more=more))
    return found[0]


async def test_whole_answer__leaves_at_once() -> None:
    at_once, written = await whole(HEADERS)

    assert at_once
    assert written == b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\nok"


@pytest.mark.parametrize("value", [b"a\r\nset-cookie: b", b"a\nb", b"a\rb", b"a\n"])
async def test_whole_answer__with_a_header_that_could_make_another_one__is_not_written(value: bytes) -> None:
    assert await whole([*HEADERS, (b"x-text", value)]) == (False, b"")


async def test_whole_answer__after_which_the_connection_ends__is_not_written() -> None:
    assert await whole(HEADERS, more="Connection: close\r\n") == (False, b"")
