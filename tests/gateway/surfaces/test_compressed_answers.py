"""Answers that come compressed without being asked for, on every way of a request through the gateway."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import cast

import brotli
import pytest

from tests.fakes.dialects.story import Story
from tests.fakes.scripted import Step
from tests.fakes.upstream import Connection, Received
from tests.gateway.conftest import Routed
from tests.gateway.surfaces.ways import EVERY_WAY, WHOLE_AND_STREAMED, Way, answering, error_of
from tests.integrations.transport.test_compressed import FORMATS

FORMAT = pytest.mark.parametrize(("encoding", "compress"), FORMATS.values(), ids=FORMATS)
STORY = Story(text="Grüße 👋, the answer is 42.")


class Told:
    """Stands for the connection to a client, and keeps what is sent."""

    def __init__(self) -> None:
        self.headers: dict[str, str] = {}
        self.body = b""

    async def send_whole(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.headers, self.body = dict(headers or {}), body

    async def start_stream(self, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self.headers = dict(headers or {})

    async def send_chunk(self, data: bytes) -> None:
        self.body += data

    async def end_stream(self) -> None:
        """Does nothing: the body is whole."""


def compressed(provider: str, encoding: str, compress: Callable[[bytes], bytes]) -> Step:
    async def step(request: Received, connection: Connection) -> None:
        told = Told()
        await answering(provider, STORY)(request, cast("Connection", told))
        headers = {name: value for name, value in told.headers.items() if name.lower() != "content-length"}
        body = compress(told.body)
        await connection.start_stream(200, {**headers, "content-encoding": encoding})
        for start in range(0, len(body), 50):
            await connection.send_chunk(body[start : start + 50])
        await connection.end_stream()

    return step


@EVERY_WAY
@WHOLE_AND_STREAMED
@FORMAT
def test_answer__compressed__reaches_the_client_readable(
    routed: Routed, way: Way, stream: bool, encoding: str, compress: Callable[[bytes], bytes]
) -> None:
    gateway, _ = routed(**{way.provider: [compressed(way.provider, encoding, compress)]})

    response = way.ask(gateway, way.body(stream=stream))

    assert "content-encoding" not in response.headers
    answer = way.read(response)
    assert (answer.text, answer.finish, answer.usage) == (STORY.text, "stop", (21, 0, 9))


@EVERY_WAY
@WHOLE_AND_STREAMED
@pytest.mark.parametrize("encoding", ["br", "zstd, gzip", "gzip"])
def test_answer__that_cannot_be_decompressed__is_named_without_its_bytes(
    routed: Routed, way: Way, stream: bool, encoding: str
) -> None:
    """The body has another format than its header says, or one that nobody reads."""

    def otherwise(data: bytes) -> bytes:
        return zlib.compress(data) if encoding == "br" else brotli.compress(data)

    routing = {"retry_enabled": False}
    gateway, _ = routed(routing, **{way.provider: [compressed(way.provider, encoding, otherwise)]})

    response = way.ask(gateway, way.body(stream=stream))

    assert response.status_code == 500, response.text
    message = error_of(response)["message"]
    assert f"compressed with {encoding}, which" in message
    assert message.isascii()
    assert message.isprintable()
