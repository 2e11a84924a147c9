"""Builds RE2 patterns for the base64 and hexadecimal encodings of a text.

A URL is full of what could be base64: words, digests, random names. Few of them decode to a text, because most bytes
cannot follow each other in UTF-8. The encoded characters show this without decoding.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits

# ASCII control characters other than those that break a line.
UNPRINTABLE = bytes((*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), 0x7F))

_VALUES = dict(zip(ascii_uppercase + ascii_lowercase + digits + "+/-_", (*range(64), 62, 63), strict=True))
_PLAIN = ascii_letters + digits + "+/"
# UTF-8 bytes by kind: `a` is an ASCII character, `f` the first byte of a longer character, `o` one of its other bytes.
# The three tuples list the kinds of three bytes at the start, of three bytes after those, and of one or two at the end.
_START = ("aaa", "aaf", "afo", "foa", "fof", "foo")
_GOING_ON = (*_START, "oaa", "oaf", "ofo", "ooa", "oof", "ooo")
_END = ("a", "o", "aa", "fo", "oa", "oo")

_HEX = "[0-9A-Fa-f]"
_HEXADECIMAL = rf"(?:[2-7]{_HEX}|0[9AaDd]|(?:[C-Ec-e]{_HEX}|[Ff][0-4])(?:[89ABab]{_HEX}){{1,3}}){{3,}}"


def hexadecimal_of_text() -> str:
    return _alone(_HEXADECIMAL, _PLAIN)


def base64_of_text(*, separators: str = "", backwards: bool = False) -> str:
    """Matches at least four bytes; written backwards at least seven, since more words match by chance.

    With `-_` as `separators` these stand for 62 and 63 too; otherwise they end the encoding.
    """
    signs = _PLAIN + separators
    start, going_on, end = (_bytes(kinds, signs, backwards=backwards) for kinds in (_START, _GOING_ON, _END))
    if backwards:
        return _alone(f"(?:{end}|{end}?{going_on}+){going_on}{start}", signs)
    return _alone(f"{start}(?:{end}|{going_on}+{end}?)", signs)


def _bytes(sequences: Iterable[str], signs: str, *, backwards: bool) -> str:
    ways = []
    for kinds in sequences:
        # The last character holds the remaining bits of the last byte, or padding bits.
        classes = [*(_signs_of(kind, place, signs) for place, kind in enumerate(kinds)), _class(signs)]
        ways.append("".join(classes[::-1] if backwards else classes))
    return f"(?:{'|'.join(ways)})"


@cache
def _signs_of(kind: str, place: int, signs: str) -> str:
    """A byte has six bits in the first base64 character, four in the second, two in the third."""
    shift = 2 * place + 2
    lowest = {sign: _VALUES[sign] << shift & 0xFF for sign in signs}
    return _class(sign for sign in signs if kind in map(_kind, range(lowest[sign], lowest[sign] + (1 << shift))))


def _kind(byte: int) -> str:
    if byte < 0x80:
        return "" if byte in UNPRINTABLE else "a"
    return "o" if byte < 0xC0 else "f" if 0xC2 <= byte < 0xF5 else ""


def _class(signs: Iterable[str]) -> str:
    return f"[{re.escape(''.join(signs))}]"


def _alone(pattern: str, signs: str) -> str:
    border = f"[^{re.escape(signs)}]"
    return f"(?:^|{border}){pattern}(?:$|{border})"
