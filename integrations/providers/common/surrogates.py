r"""Decodes JSON with lone surrogates.

Some servers cut a character beyond the basic plane in two and escape the half (`"\ud83d"`). Python's and JavaScript's
decoders accept that; msgspec does not, and UTF-8 cannot hold it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

import msgspec

_Decoded = TypeVar("_Decoded")
# The pattern matches a whole pair, a half (the group), or any other escape, so that `\\ud83d`, a backslash and letters,
# stays unchanged.
_ESCAPE = re.compile(rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F]..)|.)", re.DOTALL)
_REPLACEMENT = rb"\ufffd"


def lenient(decode: Callable[[bytes], _Decoded]) -> Callable[[bytes], _Decoded]:
    """Returns a decoder that reads lone surrogates as U+FFFD, and otherwise raises the errors of `decode`."""

    def read(data: bytes) -> _Decoded:
        try:
            return decode(data)
        except msgspec.DecodeError:
            whole = with_whole_characters(data)
            if whole == data:
                raise
            return decode(whole)

    return read


def with_whole_characters(data: bytes) -> bytes:
    return _ESCAPE.sub(lambda found: _REPLACEMENT if found[1] else found[0], data)
