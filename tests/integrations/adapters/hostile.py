"""Makes answers that no provider should send: a good one in which one value is replaced by one of another type."""

from __future__ import annotations

import binascii
import json
import struct
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

ODD_VALUES: tuple[Any, ...] = (None, True, -1, 1.5, 10**30, "", "odd", [], ["odd"], [None], {}, {"odd": "odd"}, [[]])
# The prelude of a frame holds its length, the length of the headers and a checksum:
# https://smithy.io/2.0/aws/amazon-eventstream.html
_PRELUDE = 12


def places(value: Any) -> Iterator[tuple[Any, ...]]:
    """Yields the path of every value inside, beginning with the whole."""
    yield ()
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        for rest in places(item):
            yield (key, *rest)


def swapped(value: Any, path: tuple[Any, ...], odd: Any, *, drop: bool = False) -> Any:
    """Returns a copy with the value at `path` replaced, or left out."""
    if not path:
        return odd
    copy = deepcopy(value)
    holder = copy
    for key in path[:-1]:
        holder = holder[key]
    if drop:
        del holder[path[-1]]
    else:
        holder[path[-1]] = odd
    return copy


def payload_of(event: bytes) -> Any:
    """Returns the JSON inside an event, of a text protocol or of AWS's binary one; None when there is none."""
    try:
        return json.loads(text_of(event))
    except ValueError:
        return None


def with_payload(event: bytes, payload: Any) -> bytes:
    """Returns the event around another JSON, with correct checksums."""
    return with_text(event, json.dumps(payload, ensure_ascii=False).encode())


def with_text(event: bytes, replacement: bytes) -> bytes:
    """Returns the event around another text, with correct checksums."""
    if not _is_frame(event):
        return event.replace(text_of(event), replacement)
    headers_length = struct.unpack(">I", event[4:8])[0]
    headers = event[_PRELUDE : _PRELUDE + headers_length]
    total = _PRELUDE + headers_length + len(replacement) + 4
    prelude = struct.pack(">II", total, headers_length)
    prelude += struct.pack(">I", binascii.crc32(prelude))
    message = prelude + headers + replacement
    return message + struct.pack(">I", binascii.crc32(message))


def _is_frame(event: bytes) -> bool:
    return event[:1] == b"\0"


def text_of(event: bytes) -> bytes:
    if _is_frame(event):
        headers_length = struct.unpack(">I", event[4:8])[0]
        return event[_PRELUDE + headers_length : -4]
    line: bytes = next((line for line in event.splitlines() if line.startswith(b"data:")), b"data:")
    return line[5:].strip()
