"""What an address can carry: the parts that somebody chose, alone and put together, with their encodings undone."""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple
from urllib.parse import unquote, unquote_plus, urlsplit

import re2

from gateway.guardrails.detectors.characters import encoded

# Base64 or hexadecimal of four characters at least.
_ENCODED = re2.compile(r"={0,2}[A-Za-z0-9+/_-]{6,}={0,2}")
_MIN_PIECE, _MIN_BACKWARDS = 6, 12
_MAX_PERCENT, _MAX_ENCODINGS = 4, 2
_NUMBER = re.compile(r"(\d+)")
_UNPRINTABLE = bytes((*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), 0x7F))
_FROM_URL = bytes.maketrans(b"-_", b"+/")
_HEXADECIMAL = b"0123456789abcdefABCDEF"
_LONG_LABEL = 16


class Carried(NamedTuple):
    """`values`: of the query, the fragment, long labels of the host. `segments`: of the path. `wholes`: each of these
    put together, for what was split; those of the query also in the order of their names."""

    values: tuple[str, ...]
    segments: tuple[str, ...]
    wholes: tuple[str, ...]


def carried_by(url: str) -> Carried:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return Carried((url,), (), ())
    named = [_named(piece) for piece in parts.query.replace(";", "&").split("&") if piece]
    query = [value for _, value in named]
    segments = [_unquoted(segment, unquote) for segment in parts.path.split("/") if segment]
    labels = host.split(".")[:-2]
    values = [
        *query,
        _unquoted(parts.fragment, unquote_plus),
        *(label for label in labels if len(label) >= _LONG_LABEL),
    ]
    by_name = [value for _, value in sorted(named, key=lambda pair: _in_order(pair[0]))] if len(named) > 1 else query
    wholes = ("".join(part) for part in (query, by_name, segments, labels, values))
    return Carried(_each_once(values), _each_once(segments), _each_once(wholes))


def _each_once(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(filter(None, dict.fromkeys(values)))


def decoded(text: str) -> Iterator[str]:
    """Readable texts that parts of it are base64 or hexadecimal of, forwards or backwards, or of each other."""
    for candidate in {match.group() for match in _ENCODED.finditer(encoded(text))}:
        yield from _decoded(candidate, _MAX_ENCODINGS)
    if " " in text:  # which was a plus sign before the address was read
        yield from decoded(text.replace(" ", "+"))


def _named(piece: str) -> tuple[str, str]:
    name, separator, value = piece.partition("=")
    return name, _unquoted(value if separator else name, unquote_plus)


def _unquoted(text: str, unquoted: Callable[[str], str]) -> str:
    """However often it was quoted; `unquoted` undoes it once."""
    text = unquoted(text)
    for _ in range(_MAX_PERCENT - 1 if "%" in text else 0):
        once_more = unquote(text)
        if once_more == text:
            break
        text = once_more
    return text


def _in_order(name: str) -> list[tuple[int, str]]:
    """`p9` before `p10`."""
    return [(int(part[:18]) if part.isdecimal() else -1, part) for part in _NUMBER.split(name)]


def _decoded(candidate: bytes, encodings: int) -> Iterator[str]:
    # `-` and `_` are signs of base64 in addresses, and separators of everything else.
    pieces = {candidate, *(piece for piece in candidate.replace(b"_", b"-").split(b"-") if len(piece) >= _MIN_PIECE)}
    for piece in pieces:
        for text in _texts(piece):
            plain = _unquoted(text, unquote)
            yield plain
            if encodings > 1:
                for match in _ENCODED.finditer(encoded(plain)):
                    yield from _decoded(match.group(), encodings - 1)


def _texts(piece: bytes) -> Iterator[str]:
    is_hexadecimal = len(piece) % 2 == 0 and not piece.strip(_HEXADECIMAL)
    if is_hexadecimal:
        yield from _readable(binascii.unhexlify(piece))
    if len(piece) < _MIN_BACKWARDS:
        yield from _from_base64(piece)
    elif not is_hexadecimal:  # so many digits are no accident
        yield from _from_base64(piece)
        yield from _from_base64(piece[::-1])


def _from_base64(candidate: bytes) -> Iterator[str]:
    bare = candidate.strip(b"=").translate(_FROM_URL)
    # Six letters of base64 are all small once in 220 times; those of words in a path nearly always are.
    if len(bare) % 4 != 1 and not (bare.isalpha() and bare.islower()):
        yield from _readable(binascii.a2b_base64(bare + b"=" * (-len(bare) % 4)))


def _readable(data: bytes) -> Iterator[str]:
    """Random bytes are hardly ever printable text from end to end."""
    if data.isascii() and data.translate(None, _UNPRINTABLE) != data:
        return  # as for most: quicker to see than to decode
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return
    if text.isprintable() or text.replace("\n", " ").replace("\r", " ").replace("\t", " ").isprintable():
        yield text
