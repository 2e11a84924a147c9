"""One record in a segment: header, meta, request bytes, response bytes.

Header, little-endian, 20 bytes: magic `PGS1` (the last character is the version), the lengths of meta, request and
response in bytes, and the CRC-32 of everything that follows the header, seeded with that of the three lengths.
Meta is the `RequestRecord` as JSON.
"""

from __future__ import annotations

import struct
from typing import Any
from zlib import crc32

import msgspec

from analytics.contracts import RequestRecord, SpoolEntry

MAGIC = b"PGS1"
HEADER = struct.Struct("<4sIIII")
LENGTHS = struct.Struct("<III")
# Far above what the gateway lets through: a length beyond it is damage, not data.
MAX_PART_BYTES = 1 << 30

_encoder = msgspec.json.Encoder()


def pack(entry: SpoolEntry) -> tuple[bytes, bytes, bytes, bytes]:
    """The buffers of one frame, in order."""
    meta = encode_meta(entry.record)
    lengths = (len(meta), len(entry.request), len(entry.response))
    return (
        HEADER.pack(MAGIC, *lengths, checksum(lengths, meta, entry.request, entry.response)),
        meta,
        entry.request,
        entry.response,
    )


def checksum(lengths: tuple[int, int, int], *parts: bytes | memoryview) -> int:
    value = crc32(LENGTHS.pack(*lengths))
    for part in parts:
        value = crc32(part, value)
    return value


def encode_meta(record: RequestRecord) -> bytes:
    try:
        return _encoder.encode(record)
    except UnicodeEncodeError:
        # A lone surrogate has no UTF-8 form. The record counts more than that character.
        return _encoder.encode(_without_surrogates(msgspec.to_builtins(record)))


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_surrogates(item) for item in value]
    return value
