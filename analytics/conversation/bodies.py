from __future__ import annotations

import json
from typing import Any

import msgspec

_decoder = msgspec.json.Decoder()
NOT_JSON = object()


def decode_body(text: str) -> Any:
    """Returns NOT_JSON for invalid JSON. Accepts NaN, halves of surrogate pairs and long numbers."""
    try:
        return _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return _decode_leniently(text)


def _decode_leniently(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return NOT_JSON


def as_json(value: Any) -> str:
    """Returns a decoded value as compact JSON; halves of surrogate pairs become question marks.

    Raises RecursionError for a value that is nested too deeply for the encoders.
    """
    try:
        return msgspec.json.encode(value).decode()
    except (msgspec.EncodeError, UnicodeError, OverflowError, ValueError, TypeError):
        return clean(json.dumps(value, ensure_ascii=False, default=str))


def clean(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def text_of(value: Any) -> str:
    if isinstance(value, str):
        return clean(value)
    return "" if value is None else as_json(value)
