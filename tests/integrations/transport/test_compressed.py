"""Tests answers that come compressed although none is asked for."""

from __future__ import annotations

import gzip
import itertools
import sys
import zlib
from collections.abc import Callable, Mapping

import brotli
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from integrations.providers.errors import FailureKind, ProviderError
from integrations.transport.base import Transport
from tests.fakes.raw_server import Peer, answering, raw_server
from tests.integrations.transport.requests import LIMIT, LONG_TIMEOUTS, fetch, post
from tests.night import examples

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Compress = Callable[[bytes], bytes]

TEXT = '{"text": "Grüße 👋"}'.encode() * 300


def raw_deflate(data: bytes) -> bytes:
    """Returns what some servers send as deflate: without the frame that the name stands for (RFC 9110, 8.4.1.2)."""
    compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return compressor.compress(data) + compressor.flush()


def in_members(data: bytes) -> bytes:
    half = len(data) // 2
    return gzip.compress(data[:half]) + gzip.compress(data[half:])


FORMATS: Mapping[str, tuple[str, Compress]] = {
    "gzip": ("gzip", gzip.compress),
    "gzip in members": ("gzip", in_members),
    "x-gzip": ("X-GZip", gzip.compress),
    "deflate": ("deflate", zlib.compress),
    "raw deflate": ("deflate", raw_deflate),
    "zstd": ("zstd", zstd.compress),
    "br": ("br", brotli.compress),
}
FORMAT = pytest.mark.parametrize(("encoding", "compress"), FORMATS.values(), ids=FORMATS)


def head(status: int, encoding: str, *more: bytes) -> bytes:
    return b"HTTP/1.1 %d X\r\ncontent-encoding: %b\r\n%b\r\n" % (status, encoding.encode(), b"".join(more))


def whole(body: bytes, encoding: str, status: int = 200) -> bytes:
    return head(status, encoding, b"content-length: %d\r\n" % len(body)) + body


def chunked(encoding: str, *pieces: bytes) -> list[bytes]:
    framed = [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces if piece]
    return [head(200, encoding, b"transfer-encoding: chunked\r\n"), *framed, b"0\r\n\r\n"]


@FORMAT
async def test_answer__compressed__is_read(transport: Transport, encoding: str, compress: Compress) -> None:
    async with raw_server(answering(whole(compress(TEXT), encoding))) as server:
        for _ in range(2):
            assert await fetch(transport, server.url) == TEXT
        assert len(server.peers) == 1, "the connection serves again"


@pytest.mark.parametrize("encoding", ["identity", ""])
async def test_answer__said_to_be_as_it_is__is_read(transport: Transport, encoding: str) -> None:
    async with raw_server(answering(whole(TEXT, encoding))) as server:
        assert await fetch(transport, server.url) == TEXT


@FORMAT
@settings(max_examples=examples(5, 15), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.binary(max_size=4000), cuts=st.lists(st.integers(0, 4000), max_size=6), takes=st.integers(1, 3))
async def test_answer__compressed_and_cut_anywhere__is_delivered(
    transport: Transport, encoding: str, compress: Compress, text: bytes, cuts: list[int], takes: int
) -> None:
    body = compress(text)
    places = [0, *sorted({cut % (len(body) + 1) for cut in cuts}), len(body)]
    pieces = [body[start:end] for start, end in itertools.pairwise(places)]
    received: list[bytes] = []

    def take(data: bytes) -> bool:
        received.append(data)
        return len(received) % takes != 0

    async with raw_server(answering(*chunked(encoding, *pieces))) as server:
        response = await transport.send(post(server.url), LONG_TIMEOUTS)
        while not await response.deliver(take):
            pass
        response.close()
    assert b"".join(received) == text
    assert all(received)


async def test_event__flushed_by_the_server__is_given_at_once(transport: Transport) -> None:
    compressor = zlib.compressobj(wbits=31)
    first = compressor.compress(b"data: 1\n\n") + compressor.flush(zlib.Z_SYNC_FLUSH)
    begin, piece, *_ = chunked("gzip", first)

    async def silent_after_the_first(peer: Peer) -> None:
        await peer.read_request()
        await peer.send(begin + piece)
        await peer.hung_up()

    async with raw_server(silent_after_the_first) as server:
        response = await transport.send(post(server.url), LONG_TIMEOUTS)
        assert await anext(response.chunks()) == b"data: 1\n\n"
        response.close()


@FORMAT
async def test_bomb__larger_than_the_limit__is_given_up(
    transport: Transport, encoding: str, compress: Compress
) -> None:
    limit = 200_000
    bomb = compress(bytes(64 * limit))
    assert len(bomb) < limit
    async with raw_server(answering(whole(bomb, encoding))) as server:
        response = await transport.send(post(server.url), LONG_TIMEOUTS)
        with pytest.raises(ProviderError, match="larger than 200000 bytes") as caught:
            await response.read(limit=limit)
        assert caught.value.kind is FailureKind.UNUSABLE

        response = await transport.send(post(server.url), LONG_TIMEOUTS)
        assert len(await anext(response.chunks())) <= limit
        response.close()


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "zstd", "br"])
async def test_answer__damaged__is_named_without_its_bytes(transport: Transport, encoding: str) -> None:
    async with raw_server(answering(whole(b"\xffsecret bytes", encoding))) as server:
        with pytest.raises(ProviderError) as caught:
            await fetch(transport, server.url)
    assert caught.value.kind is FailureKind.UNUSABLE
    assert str(caught.value) == f"the provider's answer is compressed with {encoding}, which is damaged"


@pytest.mark.parametrize(
    ("encoding", "named"), [("compress", "compress"), ("gzip, br", "gzip, br"), ("aws-chunked\x80" * 9, "aws-chunked")]
)
async def test_answer__in_an_unknown_encoding__is_named_without_its_bytes(
    transport: Transport, encoding: str, named: str
) -> None:
    body = encoding.encode("latin-1")
    async with raw_server(answering(whole(b"\x1f\x9dsecret", "compress").replace(b"compress", body))) as server:
        response = await transport.send(post(server.url), LONG_TIMEOUTS)
        with pytest.raises(ProviderError) as caught:
            await anext(response.chunks())
        response.close()
    assert caught.value.kind is FailureKind.UNUSABLE
    assert str(caught.value).startswith(f"the provider's answer is compressed with {named}")
    assert str(caught.value).isascii()
    assert "secret" not in str(caught.value)


@FORMAT
async def test_error__compressed__is_read(transport: Transport, encoding: str, compress: Compress) -> None:
    async with raw_server(answering(whole(compress(TEXT), encoding, 400))) as server:
        response = await transport.send(post(server.url), LONG_TIMEOUTS)
        assert (response.status, await response.read(limit=LIMIT)) == (400, TEXT)


@pytest.mark.parametrize(("encoding", "what"), [("compress", "does not read"), ("gzip", "is damaged")])
async def test_error__that_cannot_be_decompressed__says_so(transport: Transport, encoding: str, what: str) -> None:
    async with raw_server(answering(whole(b"\x1f\x9dsecret", encoding, 429))) as server:
        response = await transport.send(post(server.url), LONG_TIMEOUTS)
        body = await response.read(limit=LIMIT)
    assert response.status == 429
    assert body.decode().startswith(f"the provider's answer is compressed with {encoding}, ")
    assert what in body.decode()
