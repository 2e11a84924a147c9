"""The frame of one record in a segment: header, meta, request bytes, response bytes.

Header, little-endian, 20 bytes: magic `PGS1` (the last character is the version), the lengths of meta, request and
response in bytes, and a CRC-32 over the lengths and everything after the header, seeded by the segment's name. Meta is
the `RequestRecord` as JSON.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import msgspec

# The checksum is that of zlib, computed up to fourteen times as fast: every byte of every record passes here twice.
from isal.isal_zlib import crc32

from analytics.request_log.record import RequestRecord

MAGIC = b"PGS1"
HEADER = struct.Struct("<4sIIII")
LENGTHS = struct.Struct("<III")

_encoder = msgspec.json.Encoder()


def segment_seed(path: Path) -> int:
    """Returns the start value of a segment's checksums.

    It comes from the random part of the file's name, so that no client can send content that passes for a frame when a
    reader looks for the next good frame behind a damaged one.
    """
    return crc32(path.name.encode())


def pack(meta: bytes, request: bytes, response: bytes, seed: int) -> tuple[bytes, bytes, bytes, bytes]:
    lengths = (len(meta), len(request), len(response))
    # `checksum` is the same for any number of parts, and takes twice the time.
    check = crc32(response, crc32(request, crc32(meta, crc32(LENGTHS.pack(*lengths), seed))))
    return HEADER.pack(MAGIC, *lengths, check), meta, request, response


def checksum(seed: int, lengths: tuple[int, int, int], *parts: bytes | memoryview) -> int:
    value = crc32(LENGTHS.pack(*lengths), seed)
    for part in parts:
        value = crc32(part, value)
    return value


def encode_meta(record: RequestRecord) -> bytes:
    try:
        return _encoder.encode(record)
    except UnicodeEncodeError:
        # A lone surrogate has no UTF-8 form. The record matters more than that character.
        return _encoder.encode(_without_surrogates(msgspec.to_builtins(record)))


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_surrogates(item) for item in value]
    return value
