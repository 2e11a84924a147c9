from __future__ import annotations

import zlib
from enum import Enum
from typing import Protocol

from analytics.telemetry.errors import LargeExportError, MalformedExportError, UnsupportedExportError

_GZIP, _ZLIB, _RAW = 31, 15, -15
_PIECE = 64 * 1024


class Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class Encoding(Enum):
    PROTOBUF = "application/x-protobuf"
    JSON = "application/json"


_TYPES = {
    "application/x-protobuf": Encoding.PROTOBUF,
    "application/protobuf": Encoding.PROTOBUF,
    "application/json": Encoding.JSON,
}


def encoding_of(content_type: str) -> Encoding:
    found = _TYPES.get(content_type.strip().lower())
    if found is None:
        raise UnsupportedExportError("Content-Type must be application/x-protobuf or application/json.")
    return found


def read_body(stream: Readable, content_encoding: str, *, declared: int, limit: int) -> bytes:
    """Returns the inflated bytes: at most `limit` before and after inflation, which stops there.

    `declared` is the Content-Length, 0 if absent. Raises LargeExportError, UnsupportedExportError,
    MalformedExportError.
    """
    if declared > limit:
        raise _too_large(limit)
    codings = [name.strip().lower() for name in content_encoding.split(",") if name.strip()]
    codings = [name for name in codings if name != "identity"]
    if len(codings) > 1 or (codings and codings[0] not in ("gzip", "x-gzip", "deflate")):
        raise UnsupportedExportError("Content-Encoding must be gzip, deflate or none.")
    sent = stream.read(limit + 1)
    if len(sent) > limit:
        raise _too_large(limit)
    if not codings or not sent:
        return sent
    try:
        return _inflate(sent, _window(codings[0], sent), limit)
    except zlib.error:
        raise MalformedExportError(f"The body is not {codings[0]} data.") from None


def _window(coding: str, sent: bytes) -> int:
    if coding != "deflate":
        return _GZIP
    # HTTP's deflate is zlib's format; some clients send the bare stream (RFC 9110, section 8.4.1.2).
    is_zlib = len(sent) > 1 and sent[0] & 0x0F == 8 and int.from_bytes(sent[:2], "big") % 31 == 0
    return _ZLIB if is_zlib else _RAW


def _inflate(sent: bytes, window: int, limit: int) -> bytes:
    inflated = bytearray()
    waiting = sent
    while waiting:
        inflater = zlib.decompressobj(window)
        while waiting and not inflater.eof:
            inflated += inflater.decompress(waiting, _PIECE)
            if len(inflated) > limit:
                raise _too_large(limit)
            waiting = inflater.unconsumed_tail
        # The decompressor may still hold output back when all input was read.
        while not inflater.eof and (piece := inflater.decompress(b"", _PIECE)):
            inflated += piece
            if len(inflated) > limit:
                raise _too_large(limit)
        if not inflater.eof:
            raise MalformedExportError("The compressed body ends too early.")
        # A gzip file may have several members.
        waiting = inflater.unused_data if window == _GZIP else b""
    return bytes(inflated)


def _too_large(limit: int) -> LargeExportError:
    return LargeExportError(f"The body is larger than {limit} bytes. Send smaller batches.")
