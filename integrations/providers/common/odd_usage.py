"""Decodes answers with malformed usage, so that counts do not cost the answer: reads a number in a text; usage that
cannot be read is unknown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

_Decoded = TypeVar("_Decoded")
_NAMES = frozenset({"usage", "usageMetadata"})
# Events of streams hold the usage in one of these objects.
_HOLDERS = frozenset({"message", "response"})
_MAX_DIGITS = 15
_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode


def despite_usage(decode: Callable[[bytes], _Decoded]) -> Callable[[bytes], _Decoded]:
    """Returns a decoder that accepts any usage, and otherwise raises the errors of `decode`."""

    def read(data: bytes) -> _Decoded:
        try:
            return decode(data)
        except msgspec.ValidationError as error:
            for change in (_with_numbers, _nothing):
                try:
                    return decode(_changed(data, change))
                except msgspec.DecodeError:
                    continue
            raise error from None

    return read


def _changed(data: bytes, change: Callable[[Any], Any]) -> bytes:
    fields = _decode_fields(data)
    for name, raw in fields.items():
        if name in _NAMES:
            fields[name] = msgspec.Raw(_encode(change(msgspec.json.decode(raw))))
        elif name in _HOLDERS and bytes(raw)[:1] == b"{":
            fields[name] = msgspec.Raw(_changed(bytes(raw), change))
    return _encode(fields)


def _with_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _with_numbers(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_with_numbers(one) for one in value]
    if not isinstance(value, str):
        return value
    return int(value) if value.isascii() and value.isdigit() and len(value) <= _MAX_DIGITS else value


def _nothing(value: Any) -> None:
    return None
