"""Reads compressed answers (RFC 9110, 8.4.1). None is asked for (`accept-encoding: identity`), but some servers and
proxies compress all the same.

The decompressors are aiohttp's, with the libraries that it names for zstd and brotli. Their output has pieces of
bounded size, so that readers' limits count the bytes of the answer, not those on the wire.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from math import inf

import brotli
from aiohttp.compression_utils import (
    BrotliDecompressor,
    DecompressionBaseHandler,
    TooManyMembersError,
    ZLibDecompressor,
    ZSTDDecompressor,
)

from integrations.transport import failures
from integrations.transport.base import UpstreamResponse

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdError
else:
    from backports.zstd import ZstdError

_OUTPUT_BYTES = 64 * 1024
_DAMAGED = (zlib.error, brotli.error, ZstdError, TooManyMembersError, EOFError)
# The method in the first byte of the format that `deflate` stands for. Some servers leave that format's frame out.
_ZLIB_METHOD = 8
_MAX_NAME = 40
_NO_TOKEN = re.compile(r"[^a-z0-9!#$%&'*+.^_`|~, -]")
_NONE = ("", "identity")


def decompressed(response: UpstreamResponse, host: str) -> UpstreamResponse:
    encoding = response.headers.get("content-encoding", "").strip().lower()
    return response if encoding in _NONE else DecompressedResponse(response, encoding, host)


class DecompressedResponse(AsyncIterator[bytes]):
    """Decompresses the body as it is read. A cancelled read loses nothing and may be repeated.

    An undecodable body raises ProviderError(UNUSABLE). In an error answer it becomes a sentence that says so, since the
    status says more than the failure would.
    """

    def __init__(self, response: UpstreamResponse, encoding: str, host: str) -> None:
        self._response = response
        self._chunks = response.chunks()
        self._encoding = _NO_TOKEN.sub("", encoding)[:_MAX_NAME]
        self._host = host
        self._decompressor: DecompressionBaseHandler | None = None

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    async def read(self, *, limit: int, until: float = inf) -> bytes:
        received = bytearray()
        try:
            async for piece in self:
                received += piece
                if len(received) > limit:
                    raise failures.too_large(self._host, limit)
                if time.monotonic() > until:
                    raise failures.too_slow(self._host)
        except failures.UnreadableAnswerError as error:
            self.close()
            if 200 <= self.status < 300:
                raise
            return str(error).encode()
        except BaseException:
            self.close()
            raise
        return bytes(received)

    def chunks(self) -> AsyncIterator[bytes]:
        return self

    async def deliver(self, take: Callable[[bytes], bool]) -> bool:
        async for data in self:
            if not take(data):
                return False
        return True

    async def __anext__(self) -> bytes:
        while True:
            decompressor = self._decompressor
            if decompressor is not None and decompressor.data_available:
                await asyncio.sleep(0)  # What a few bytes stand for may keep the event loop busy for long.
                piece = self._decompressed(decompressor, b"")
            else:
                data = await anext(self._chunks)
                decompressor = self._decompressor = decompressor or self._new_decompressor(data)
                piece = self._decompressed(decompressor, data)
            if piece:
                return piece

    def close(self) -> None:
        self._response.close()

    def _new_decompressor(self, data: bytes) -> DecompressionBaseHandler:
        match self._encoding:
            case "gzip" | "x-gzip":
                return ZLibDecompressor("gzip")
            case "deflate":
                return ZLibDecompressor("deflate", suppress_deflate_header=data[0] & 0xF != _ZLIB_METHOD)
            case "zstd":
                return ZSTDDecompressor()
            case "br":
                return BrotliDecompressor()
        raise failures.unknown_compression(self._encoding)

    def _decompressed(self, decompressor: DecompressionBaseHandler, data: bytes) -> bytes:
        try:
            return decompressor.decompress_sync(data, _OUTPUT_BYTES)
        except _DAMAGED:
            raise failures.damaged_compression(self._encoding) from None
