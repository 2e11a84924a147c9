"""What base64 and hexadecimal of a text look like, as patterns of RE2.

An address is full of what could be base64: words, digests, random names. Few of them are base64 of a text, because most
bytes cannot follow each other in UTF-8; the signs that stand for them show it, without decoding.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits

# Characters of ASCII that nobody prints and that break no line.
UNPRINTABLE = bytes((*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), 0x7F))

_VALUES = dict(zip(ascii_uppercase + ascii_lowercase + digits + "+/-_", (*range(64), 62, 63), strict=True))
_PLAIN = ascii_letters + digits + "+/"
# Bytes of UTF-8 by kind: `a` is a character of ASCII, `f` the first of a longer character, `o` one of its others. What
# three bytes at the start, three bytes behind those, and one or two at the end may be.
_START = ("aaa", "aaf", "afo", "foa", "fof", "foo")
_GOING_ON = (*_START, "oaa", "oaf", "ofo", "ooa", "oof", "ooo")
_END = ("a", "o", "aa", "fo", "oa", "oo")

_HEX = "[0-9A-Fa-f]"
_HEXADECIMAL = rf"(?:[2-7]{_HEX}|0[9AaDd]|(?:[C-Ec-e]{_HEX}|[Ff][0-4])(?:[89ABab]{_HEX}){{1,3}}){{3,}}"


def hexadecimal_of_text() -> str:
    """Of three characters at least."""
    return _alone(_HEXADECIMAL, _PLAIN)


def base64_of_text(*, separators: str = "", backwards: bool = False) -> str:
    """Of four bytes at least, of seven when it is written backwards, which more words look like by chance. With `-_` as
    `separators` they stand for 62 and 63 too, else they end it."""
    signs = _PLAIN + separators
    start, going_on, end = (_bytes(kinds, signs, backwards=backwards) for kinds in (_START, _GOING_ON, _END))
    if backwards:
        return _alone(f"(?:{end}|{end}?{going_on}+){going_on}{start}", signs)
    return _alone(f"{start}(?:{end}|{going_on}+{end}?)", signs)


def _bytes(sequences: Iterable[str], signs: str, *, backwards: bool) -> str:
    """Any of the sequences of kinds, as base64 from a border of three bytes on."""
    ways = []
    for kinds in sequences:
        # Bits are left over: of the last byte, or as padding.
        classes = [*(_signs_of(kind, place, signs) for place, kind in enumerate(kinds)), _class(signs)]
        ways.append("".join(classes[::-1] if backwards else classes))
    return f"(?:{'|'.join(ways)})"


@cache
def _signs_of(kind: str, place: int, signs: str) -> str:
    """What a byte of this kind may begin in: all of the first sign, four bits of the second, two of the third."""
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
