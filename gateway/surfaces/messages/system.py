"""Puts instructions into the bytes of a client's own request."""

from __future__ import annotations

import msgspec

_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
_encode = msgspec.json.Encoder().encode
_NAME = "system"


def with_system(body: bytes, text: str) -> bytes:
    """Returns the body with `text` as `system`, which it has none of: the field is absent, null or empty. The values of
    all other fields keep their bytes."""
    fields = _decoder.decode(body)
    if _NAME not in fields:
        head, _, tail = body.rpartition(b"}")
        comma = b"," if fields else b""
        return b'%b%b"%b":%b}%b' % (head, comma, _NAME.encode(), _encode(text), tail)
    return _encode({**fields, _NAME: msgspec.Raw(_encode(text))})
