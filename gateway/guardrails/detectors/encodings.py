from __future__ import annotations

import binascii
import re
from collections.abc import Iterator
from urllib.parse import unquote

import re2

from gateway.guardrails.detectors.characters import encoded
from gateway.guardrails.detectors.encoded_text import UNPRINTABLE, base64_of_text, hexadecimal_of_text

# `-` and `_` are base64 characters in URLs, and separators everywhere else.
_SEPARATORS = "-_"
_READABLE = re2.compile(
    "|".join(
        [
            base64_of_text(),
            base64_of_text(separators=_SEPARATORS),
            base64_of_text(backwards=True),
            base64_of_text(separators=_SEPARATORS, backwards=True),
            hexadecimal_of_text(),
        ]
    )
)
# The base64 or hexadecimal encoding of at least four characters.
_ENCODED = re.compile(rb"={0,2}[A-Za-z0-9+/_-]{6,}={0,2}")
_MIN_PIECE, _MIN_BACKWARDS = 6, 12
_MAX_PERCENT, _MAX_ENCODINGS = 4, 2
_FROM_URL = bytes.maketrans(b"-_", b"+/")
_HEXADECIMAL = b"0123456789abcdefABCDEF"


def decoded(text: str) -> Iterator[str]:
    if " " in text:  # A blank was a plus sign before the URL was decoded.
        text = f"{text}\n{text.replace(' ', '+')}"
    return _decoded(text, _MAX_ENCODINGS)


def unquoted(text: str) -> str:
    for _ in range(_MAX_PERCENT):
        if "%" not in text:
            break
        text = unquote(text)
    return text


def _decoded(text: str, encodings: int) -> Iterator[str]:
    data = encoded(text)
    if not _READABLE.search(data):
        return  # Most texts end here, and this check is cheaper than decoding.
    for piece in _pieces(data):
        for readable in _texts(piece):
            plain = unquoted(readable)
            yield plain
            if encodings > 1:
                yield from _decoded(plain, encodings - 1)


def _pieces(data: bytes) -> set[bytes]:
    pieces = set(_ENCODED.findall(data))
    for piece in tuple(pieces):
        if b"-" in piece or b"_" in piece:
            pieces.update(part for part in piece.replace(b"_", b"-").split(b"-") if len(part) >= _MIN_PIECE)
    return pieces


def _texts(piece: bytes) -> Iterator[str]:
    is_hexadecimal = len(piece) % 2 == 0 and not piece.strip(_HEXADECIMAL)
    if is_hexadecimal:
        yield from _readable(binascii.unhexlify(piece))
    # Six base64 letters are all lower-case once in 220 times; the letters of words in a path nearly always are.
    if piece.islower() and piece.isalpha():
        return
    if len(piece) < _MIN_BACKWARDS:
        yield from _from_base64(piece)
    elif not is_hexadecimal:  # This many hexadecimal digits are no accident.
        yield from _from_base64(piece)
        yield from _from_base64(piece[::-1])


def _from_base64(piece: bytes) -> Iterator[str]:
    bare = piece.strip(b"=").translate(_FROM_URL)
    if len(bare) % 4 != 1:
        yield from _readable(binascii.a2b_base64(bare + b"=" * (-len(bare) % 4)))


def _readable(data: bytes) -> Iterator[str]:
    """Yields the text if all of it is printable, which random bytes hardly ever are."""
    if data.isascii() and data.translate(None, UNPRINTABLE) != data:
        return  # Most bytes end here, and this check is cheaper than decoding.
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return
    if text.isprintable() or text.replace("\n", " ").replace("\r", " ").replace("\t", " ").isprintable():
        yield text
