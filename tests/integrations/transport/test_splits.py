"""Tests the property that it makes no difference where the network cuts a response."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from integrations.transport.base import Transport
from tests.fakes.raw_server import answering_once, raw_server
from tests.integrations.transport.conftest import TRANSPORTS, NewTransport
from tests.integrations.transport.requests import fetch
from tests.night import examples
from tests.waiting import TIMEOUT_SECONDS

HEAD = b"HTTP/1.1 200 OK\r\nX-Request-Id: abc\r\nContent-Type: text/event-stream\r\n"
BODY = 'data: {"text": "é€😀"}\r\n\r\ndata: [DONE]\n\n'.encode()

FRAMED = {
    "length": b"%bcontent-length: %d\r\n\r\n%b" % (HEAD, len(BODY), BODY),
    "chunked": HEAD
    + b"transfer-encoding: chunked\r\n\r\n"
    + b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (BODY[:7], BODY[7:20], BODY[20:]))
    + b"0\r\n\r\n",
    "until close": HEAD + b"\r\n" + BODY,
    "after interim": b"HTTP/1.1 100 Continue\r\n\r\n%bcontent-length: %d\r\n\r\n%b" % (HEAD, len(BODY), BODY),
}


def _cut(response: bytes, cuts: list[int]) -> list[bytes]:
    borders = [0, *sorted({cut % len(response) for cut in cuts}), len(response)]
    return [response[start:end] for start, end in pairwise(borders) if start < end]


async def _body(transport: Transport, pieces: list[bytes]) -> bytes:
    async with raw_server(answering_once(*pieces)) as server:
        return await fetch(transport, server.url)


@pytest.mark.parametrize("new", TRANSPORTS.values(), ids=TRANSPORTS)
@pytest.mark.parametrize("framing", FRAMED)
@given(cuts=st.lists(st.integers(min_value=1, max_value=400), max_size=12))
@settings(max_examples=examples(5, 15), deadline=None)
async def test_response__cut_anywhere__has_the_same_body(new: NewTransport, framing: str, cuts: list[int]) -> None:
    transport = new()
    assert await _body(transport, _cut(FRAMED[framing], cuts)) == BODY
    await transport.close()


@pytest.mark.parametrize("framing", FRAMED)
async def test_response__byte_by_byte__has_the_same_body(transport: Transport, framing: str) -> None:
    response = FRAMED[framing]
    async with asyncio.timeout(TIMEOUT_SECONDS):
        assert await _body(transport, [response[at : at + 1] for at in range(len(response))]) == BODY
