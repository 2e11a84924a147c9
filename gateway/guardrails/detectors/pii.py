"""Finds personal data that its format or checksum gives away: addresses, numbers and accounts.

The search has two steps, both linear in the text. One RE2 pattern per kind proposes candidates; a library that knows
the numbering plan or the checksum (phonenumbers, python-stdnum, ipaddress) decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import NamedTuple

import re2

from gateway.guardrails.detectors.accounts import (
    CARD_PATTERNS,
    CRYPTO_PATTERNS,
    IBAN_PATTERNS,
    find_cards,
    find_crypto,
    find_ibans,
)
from gateway.guardrails.detectors.characters import Span, character_spans, encoded
from gateway.guardrails.detectors.internet import EMAIL_PATTERNS, IP_PATTERNS, find_emails, find_ips
from gateway.guardrails.detectors.invisible import is_disguised, readings
from gateway.guardrails.detectors.matching import PatternSet
from gateway.guardrails.detectors.phones import PHONE_PATTERNS, find_phones
from gateway.guardrails.detectors.reading import Reading, as_written
from gateway.guardrails.detectors.social_security import ITIN_PATTERNS, SSN_PATTERNS, find_itins, find_ssns
from gateway.guardrails.detectors.spelling import undone_number


class PiiKind(StrEnum):
    EMAIL = "email"
    IBAN = "iban"
    CARD = "card"
    CRYPTO = "crypto"
    US_SSN = "us_ssn"
    US_ITIN = "us_itin"
    IP = "ip"
    PHONE = "phone"


class PiiEntity(NamedTuple):
    """`start` and `end` count characters."""

    kind: PiiKind
    start: int
    end: int


# Surer kinds come first and keep their place: no other kind is searched for inside of them.
_FINDERS: tuple[tuple[PiiKind, Callable[[bytes], Iterator[Span]], tuple[str, ...]], ...] = (
    (PiiKind.EMAIL, find_emails, EMAIL_PATTERNS),
    (PiiKind.CRYPTO, find_crypto, CRYPTO_PATTERNS),
    (PiiKind.IBAN, find_ibans, IBAN_PATTERNS),
    (PiiKind.CARD, find_cards, CARD_PATTERNS),
    (PiiKind.US_SSN, find_ssns, SSN_PATTERNS),
    (PiiKind.US_ITIN, find_itins, ITIN_PATTERNS),
    (PiiKind.IP, find_ips, IP_PATTERNS),
    (PiiKind.PHONE, find_phones, PHONE_PATTERNS),
)
# A single pass over the text says which finders have anything to find: none, for most texts.
_PATTERNS = PatternSet([pattern for _, _, patterns in _FINDERS for pattern in patterns])
_OWNERS = [index for index, (_, _, patterns) in enumerate(_FINDERS) for _ in patterns]

# Digits and signs of other scripts and styles, one character each, so that offsets stay.
_PLAIN = {
    **{
        base + digit: str(digit)
        for base in (0xFF10, 0x0660, 0x06F0, 0x0966, *range(0x1D7CE, 0x1D800, 10))
        for digit in range(10)
    },
    **dict.fromkeys((0x00A0, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000), " "),
    **dict.fromkeys(range(0x2010, 0x2016), "-"),
    0x2212: "-",
    0xFF20: "@",
    0xFF0E: ".",
    0xFF0B: "+",
    0xFF1A: ":",
}

_DISGUISED = re2.compile("[" + "".join(map(chr, _PLAIN)) + "]")
# Translating holds the interpreter's lock, so a text is translated in pieces of this many characters.
_AT_ONCE = 16_384


def find_pii(text: str) -> list[PiiEntity]:
    """Returns ordered entities that do not overlap.

    Invisible characters, HTML entities, percent codes and emphasis do not hide them.
    """
    data = encoded(text)
    if not text.isascii() and _DISGUISED.search(data):
        data = encoded(_undisguised(text))
    found = _find(data)
    others = list(_other_readings(text, data))
    if not others:
        return found
    for reading in others:
        entities = _find(encoded(_undisguised(reading.text)))
        found += [PiiEntity(entity.kind, *reading.place(entity.start, entity.end)) for entity in entities]
    return _united(found)


def _other_readings(text: str, data: bytes) -> Iterator[Reading]:
    undone = undone_number(text)
    if undone is not None:
        yield undone
        text, data = undone.text, encoded(undone.text)
    if is_disguised(text, data):
        yield from readings(undone or as_written(text))


def _find(data: bytes) -> list[PiiEntity]:
    matching = _PATTERNS.matching(data)
    if not matching:
        return []
    taken: list[tuple[int, int, PiiKind]] = []
    for index in sorted({_OWNERS[pattern] for pattern in matching}):
        kind, finder, _ = _FINDERS[index]
        found = [(start, end, kind) for start, end in finder(data)]
        if found:
            taken = _merged(taken, found) if taken else found
    spans = character_spans(data, [(start, end) for start, end, _ in taken])
    return [PiiEntity(kind, start, end) for (start, end), (_, _, kind) in zip(spans, taken, strict=True)]


def _united(found: list[PiiEntity]) -> list[PiiEntity]:
    united: list[PiiEntity] = []
    max_length = 0
    for entity in sorted(found, key=lambda one: (one.start, one.start - one.end)):
        length = entity.end - entity.start
        if not united or entity.start >= united[-1].end:
            united.append(entity)
            max_length = length
            continue
        kind = entity.kind if length > max_length else united[-1].kind
        max_length = max(max_length, length)
        united[-1] = PiiEntity(kind, united[-1].start, max(united[-1].end, entity.end))
    return united


def _undisguised(text: str) -> str:
    return "".join(text[first : first + _AT_ONCE].translate(_PLAIN) for first in range(0, len(text), _AT_ONCE))


def _merged(
    taken: list[tuple[int, int, PiiKind]], found: list[tuple[int, int, PiiKind]]
) -> list[tuple[int, int, PiiKind]]:
    merged: list[tuple[int, int, PiiKind]] = []
    index = 0
    for entity in found:
        while index < len(taken) and taken[index][1] <= entity[0]:
            merged.append(taken[index])
            index += 1
        if index == len(taken) or taken[index][0] >= entity[1]:
            merged.append(entity)
    return merged + taken[index:]
