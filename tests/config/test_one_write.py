from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from config.web.protocol import BoundedProtocol
from tests.config.client import Client

_PLAIN = (b"content-type", b"text/plain")
_START = {"type": "http.response.start", "status": 200}


async def written_for(messages: Iterable[dict[str, Any]], *, method: str = "GET") -> Client:
    async def application(scope: Any, receive: Any, send: Any) -> None:
        for message in messages:
            await send(message)

    config = uvicorn.Config(application, http=BoundedProtocol, ws="none", log_config=None, access_log=False)
    config.load()
    client, protocol = Client(), BoundedProtocol(config, ServerState(), {})
    protocol.connection_made(client)
    protocol.data_received(f"{method} / HTTP/1.1\r\nhost: gateway\r\n\r\n".encode())
    await asyncio.gather(*protocol.tasks)
    return client


def of_length(length: int, *more: tuple[bytes, bytes]) -> dict[str, Any]:
    return {**_START, "headers": [_PLAIN, (b"content-length", b"%d" % length), *more]}


def body(data: bytes, *, more_body: bool = False) -> dict[str, Any]:
    return {"type": "http.response.body", "body": data, "more_body": more_body}


async def test_answer__of_a_known_length__leaves_in_one_write() -> None:
    client = await written_for([of_length(5), body(b"hello")])

    assert client.written == [b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 5\r\n\r\nhello"]
    assert not client.is_closed


async def test_answer__whose_body_comes_in_pieces__has_its_head_once() -> None:
    client = await written_for([of_length(5), body(b"he", more_body=True), body(b"llo")])

    assert b"".join(client.written) == (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 5\r\n\r\nhello"
    )


async def test_answer__to_a_head_request__has_no_body() -> None:
    client = await written_for([of_length(5), body(b"hello")], method="HEAD")

    assert b"".join(client.written).endswith(b"content-length: 5\r\n\r\n")


async def test_answer__after_which_the_connection_ends__ends_it() -> None:
    client = await written_for([of_length(2, (b"connection", b"close")), body(b"ok")])

    assert b"".join(client.written).endswith(b"connection: close\r\n\r\nok")
    assert client.is_closed


async def test_stream__leaves_piece_by_piece() -> None:
    client = await written_for(
        [{**_START, "headers": [_PLAIN]}, body(b"one", more_body=True), body(b"", more_body=True), body(b"two")]
    )

    head, first, *rest = client.written
    assert head.endswith(b"transfer-encoding: chunked\r\n\r\n")
    assert first == b"3\r\none\r\n"
    assert b"".join(rest) == b"3\r\ntwo\r\n0\r\n\r\n"


@pytest.mark.parametrize("header", [(b"x-text", b"a\r\nset-cookie: b"), (b"x text", b"a"), (b"x-text", b"a\x7fb")])
async def test_header__that_could_make_another_one__is_not_sent(header: tuple[bytes, bytes]) -> None:
    client = await written_for([of_length(5, header), body(b"hello")])

    assert not any(b"hello" in piece or b"set-cookie" in piece for piece in client.written)


async def test_answer__longer_or_shorter_than_it_said__ends_the_connection() -> None:
    for length in (4, 6):
        client = await written_for([of_length(length), body(b"hello")])

        assert client.is_closed
