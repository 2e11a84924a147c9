"""Reads JSON with texts that no database accepts, and JSON that is nested deeper than a reader can follow."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

# The maximum size for Python's own reader, which makes objects of all values.
MAX_REPAIRED_BYTES = 8 * 1024 * 1024
# This depth is beyond any message that protobuf reads, and within that of every reader of JSON.
MAX_NESTED = 300

_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
# The pattern skips whole texts; one without a closing quote ends with the document.
_BRACKETS = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\Z)|[\[{]++|[\]}]++', re.DOTALL)


def object_of(content: bytes) -> dict[str, msgspec.Raw]:
    """Returns the members of a JSON object. Raises msgspec.ValidationError when the value is no object, ValueError,
    RecursionError."""
    try:
        try:
            return _object.decode(content)
        except RecursionError:
            content = _shallow(content)
            return _object.decode(content)
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _object.decode(_repaired(content))


def value_of(raw: msgspec.Raw) -> Any:
    """Returns a value whose structure was checked before. Raises ValueError, RecursionError."""
    content = bytes(raw)
    try:
        # Python's reader of bytes lets halves of surrogate pairs through, which a strict one does not.
        value = json.loads(content.decode("utf-8"))
    except UnicodeDecodeError:
        return json.loads(_repaired(content))
    return json.loads(_repaired(content)) if b"\\u" in content else value


def _repaired(content: bytes) -> bytes:
    """Returns the JSON with replacements for bytes that are no text and for halves of surrogate pairs. NaN and the
    infinities become the texts that OTLP has for them. Raises ValueError, RecursionError."""
    if len(content) > MAX_REPAIRED_BYTES:
        raise ValueError("too large for Python's own reader")
    document = json.loads(content.decode("utf-8", "replace"), parse_constant=str)
    return json.dumps(document, ensure_ascii=False).encode("utf-8", "replace")


def _shallow(content: bytes) -> bytes:
    """Returns the JSON with null in place of parts deeper than MAX_NESTED. Raises ValueError."""
    if len(content) > MAX_REPAIRED_BYTES:
        raise ValueError("too large to be looked through")
    return b"".join(_pieces(content))


def _pieces(content: bytes) -> Iterator[bytes]:
    depth, kept_from = 0, 0
    for found in _BRACKETS.finditer(content):
        run = found[0]
        if run[:1] in b"[{":
            if depth <= MAX_NESTED < depth + len(run):
                yield content[kept_from : found.start() + MAX_NESTED - depth] + b"null"
            depth += len(run)
        elif run[:1] in b"]}":
            left = depth - len(run)
            if left <= MAX_NESTED < depth:
                kept_from = found.start() + depth - MAX_NESTED
            depth = left
    if depth <= MAX_NESTED:
        yield content[kept_from:]
