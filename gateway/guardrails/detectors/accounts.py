from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

import re2
from stdnum import bitcoin, iban, luhn
from stdnum.exceptions import ValidationError

from gateway.guardrails.detectors.characters import Span, apart

_DIGITS = re2.compile(r"[0-9](?:[ .-]?[0-9])*[ .-]?[0-9]{4}")
# UATP card numbers begin as many other numbers do, so they count only beside the word card, or when they are all of an
# answer.
_AIR_TRAVEL = tuple(
    re2.compile(pattern) for pattern in (r"^\s*(1[0-9]{14})\s*$", r"(?i)\bcards?\b[^0-9\n]{0,40}\b(1[0-9]{14})\b")
)
# One class of bytes, in which the standard library's matcher is linear, and quicker than a call of RE2 for each group.
_GROUP = re.compile(rb"[0-9]+")
_MIN_CARD, _MAX_GROUPS = 12, 5
# Signs, line breaks, emoji and HTML's tags split a number as well as a blank does, and stand between the numbers of
# lists, too.
_SIGNS = r"(?:[\s.,_/|*`:;~+=\\\-\x{b7}\x{2022}\x{2013}\x{2014}\x{2190}-\x{2bff}\x{1f000}-\x{1faff}]|<[^<>0-9]*>)"
_NUMBERS = re2.compile(f"[0-9]+(?:{_SIGNS}+[0-9]+)*")
_SPLIT = re2.compile(f"[0-9]+(?:{_SIGNS}+[0-9]+)+")
# Single digits with these between them are a list.
_OF_LISTS = re2.compile(r"[,;:|\n]")
# Shorter numbers are few among cards and many among what is written in groups.
_MIN_SPLIT_CARD = 14
_MAX_CARD = 19
# A part of a card stands within this many bytes of the end or the beginning of a message.
_EDGE = 80
_MIN_PART = 4
# A number with points in it is rarely a card: groups between points have to be those that are printed on cards.
_PRINTED = frozenset(((4, 4, 4, 4), (4, 4, 4, 4, 3), (4, 6, 5), (4, 6, 4)))

# Card issuers by the first digits of their numbers, with the lengths they issue (ISO/IEC 7812 and the ranges that the
# networks publish): first, last, lengths.
_ISSUERS: tuple[tuple[str, str, tuple[int, ...]], ...] = (
    ("4", "4", (13, 16, 19)),  # Visa issues these numbers.
    ("51", "55", (16,)),  # Mastercard issues these numbers.
    ("2221", "2720", (16,)),  # Mastercard issues these numbers.
    ("34", "34", (15,)),  # American Express issues these numbers.
    ("37", "37", (15,)),
    ("300", "305", (14, 16)),  # Diners Club issues these numbers.
    ("3095", "3095", (14, 16)),
    ("36", "36", (14, 16)),
    ("38", "39", (14, 16)),
    ("6011", "6011", (16, 19)),  # Discover issues these numbers.
    ("644", "649", (16, 19)),
    ("65", "65", (16, 19)),
    ("62", "62", (16, 17, 18, 19)),  # UnionPay issues these numbers.
    ("35", "35", (16, 17, 18, 19)),  # JCB was given 3528 to 3589, and no other issuer has the rest.
    ("1800", "1800", (15,)),
    ("2131", "2131", (15,)),
    ("50", "50", (12, 13, 14, 15, 16, 17, 18, 19)),  # Maestro, Dankort and Elo issue these numbers.
    ("56", "58", (12, 13, 14, 15, 16, 17, 18, 19)),
    ("60", "61", (12, 13, 14, 15, 16, 17, 18, 19)),  # RuPay, Hipercard and Maestro issue these numbers.
    ("63", "64", (12, 13, 14, 15, 16, 17, 18, 19)),
    ("66", "69", (12, 13, 14, 15, 16, 17, 18, 19)),
    ("2200", "2204", (16, 17, 18, 19)),  # Mir issues these numbers.
    ("81", "82", (16,)),  # RuPay issues these numbers.
    ("9792", "9792", (16,)),  # Troy issues these numbers.
)

_IBAN = re2.compile(r"(?i)\b[a-z]{2}[0-9]{2}(?:[a-z0-9]{11,30}|(?:[ -][a-z0-9]{4}){2,7}(?:[ -][a-z0-9]{1,3})?)\b")
_MIN_IBAN = 15

_BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_BECH32_GENERATORS = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
_BECH32M = 0x2BC830A3

_CRYPTO = re2.compile(r"\b(?:[13][1-9A-HJ-NP-Za-km-z]{25,34}|(?i:bc1)(?i:[02-9ac-hj-np-z]{11,71})|0x[0-9a-fA-F]{40})\b")


CARD_PATTERNS: tuple[str, ...] = (
    r"[0-9](?:[ -]?[0-9]){11}",
    r"[0-9]{4}\.(?:[0-9]{4}\.[0-9]{4}\.[0-9]{4}|[0-9]{6}\.[0-9]{4})",
    f"[0-9](?:{_SIGNS}*[0-9]){{13}}",
)
IBAN_PATTERNS: tuple[str, ...] = (_IBAN.pattern,)
CRYPTO_PATTERNS: tuple[str, ...] = (_CRYPTO.pattern,)


def find_cards(data: bytes) -> Iterator[Span]:
    yield from apart([*_air_travel_cards(data), *_cards_in_runs(data), *_split_cards(data)])


def _air_travel_cards(data: bytes) -> Iterator[Span]:
    for pattern in _AIR_TRAVEL:
        for match in pattern.finditer(data):
            if luhn.is_valid(data[match.start(1) : match.end(1)].decode()):
                yield match.span(1)


def _cards_in_runs(data: bytes) -> Iterator[Span]:
    for match in _DIGITS.finditer(data):
        yield from _cards_among(data, _groups(data, match.span()))


def _groups(data: bytes, span: Span) -> list[Span]:
    start, end = span
    groups = [group.span() for group in _GROUP.finditer(data, start, end)]
    if data[max(0, start - 1) : start].isalnum():
        del groups[0]
    if groups and data[end : end + 1].isalnum():
        del groups[-1]
    return groups


def _cards_among(data: bytes, groups: list[Span]) -> Iterator[Span]:
    """Other numbers may stand before and after a card, separated only by a blank."""
    first = 0
    while first < len(groups):
        for last in range(min(first + _MAX_GROUPS, len(groups)) - 1, first - 1, -1):
            span = groups[first][0], groups[last][1]
            if span[1] - span[0] >= _MIN_CARD and _is_card(data[span[0] : span[1]]) and not _is_fraction(data, span):
                yield span
                first = last
                break
        first += 1


def _split_cards(data: bytes) -> Iterator[Span]:
    """Yields card numbers whose digits are separated by other characters.

    A list of numbers looks the same. A card must therefore be all numbers of a row without points, a row of single
    digits, or groups as printed on cards with no further group of four beside them.
    """
    for match in _SPLIT.finditer(data):
        groups = _groups(data, match.span())
        lengths = [end - start for start, end in groups]
        rows = _rows_of_digits(data, groups, lengths)
        if all(length >= 4 for length in lengths[:-1]) and b"." not in match[0]:
            rows.append((0, len(groups)))
        for first, last in (*rows, *_printed_rows(lengths)):
            digits = b"".join(data[start:end] for start, end in groups[first:last]).decode()
            if _is_split_card(digits):
                yield groups[first][0], groups[last - 1][1]


def _is_split_card(digits: str) -> bool:
    return _MIN_SPLIT_CARD <= len(digits) <= _MAX_CARD and _is_issued(digits) and luhn.is_valid(digits)


def has_card_across(texts: Iterable[bytes]) -> bool:
    """Returns whether a card is split over consecutive texts: it starts at the end of one and goes on in the next.

    Each part has four digits or more.
    """
    begun: list[str] = []  # The digits that texts before this one end with, and that a card may begin with.
    for text in texts:
        head, tail = _edge_digits(text[:_EDGE], 0), _edge_digits(text[-_EDGE:], -1)
        going_on = [digits + head for digits in begun if head and len(digits + head) <= _MAX_CARD]
        if any(map(_is_split_card, going_on)):
            return True
        begun = going_on if head == tail and len(text) <= _EDGE else []
        if tail:
            begun.append(tail)
    return False


def _edge_digits(edge: bytes, index: int) -> str:
    if len(edge) - len(edge.translate(None, b"0123456789")) < _MIN_PART:
        return ""
    digits = b"".join(_GROUP.findall(_NUMBERS.findall(edge)[index])).decode()
    return digits if len(digits) >= _MIN_PART else ""


def _rows_of_digits(data: bytes, groups: list[Span], lengths: list[int]) -> list[Span]:
    rows: list[Span] = []
    at = 0
    for is_single, row in groupby(lengths, lambda length: length == 1):
        first, at = at, at + len(list(row))
        if is_single and at - first <= _MAX_CARD and not _OF_LISTS.search(data[groups[first][0] : groups[at - 1][1]]):
            rows.append((first, at))
    return rows


def _printed_rows(lengths: list[int]) -> Iterator[Span]:
    for first, length in enumerate(lengths):
        for printed in _PRINTED if length == 4 else ():
            last = first + len(printed)
            beside = (*lengths[max(0, first - 1) : first], *lengths[last : last + 1])
            if tuple(lengths[first:last]) == printed and 4 not in beside:
                yield first, last


def _is_fraction(data: bytes, span: Span) -> bool:
    before = data[max(0, span[0] - 3) : span[0]]
    return before.endswith(b"0.") and not before[:-2].isdigit()


def _is_card(candidate: bytes) -> bool:
    if not _is_grouped(candidate):
        return False  # The grouping is cheaper to check than the issuer.
    digits = candidate.translate(None, b" .-").decode()
    return _is_issued(digits) and luhn.is_valid(digits)


def _is_issued(digits: str) -> bool:
    return any(first <= digits[: len(first)] <= last and len(digits) in lengths for first, last, lengths in _ISSUERS)


def _is_grouped(candidate: bytes) -> bool:
    groups = candidate.replace(b"-", b" ").replace(b".", b" ").split(b" ")
    if b"." in candidate:
        return tuple(map(len, groups)) in _PRINTED
    return all(len(group) >= 4 for group in groups[:-1])


def find_ibans(data: bytes) -> Iterator[Span]:
    for match in _IBAN.finditer(data):
        start, end = match.span()
        for last in _ends(data, start, end):
            if _is_iban(data[start:last]):
                yield start, last
                break


def _ends(data: bytes, start: int, end: int) -> Iterator[int]:
    """Yields where an IBAN may end: following words of four letters look like another group."""
    yield end
    while end - start > _MIN_IBAN:
        end = max(data.rfind(b" ", start, end), data.rfind(b"-", start, end))
        if end < 0:
            return
        yield end


def _is_iban(candidate: bytes) -> bool:
    compact = candidate.translate(None, b" -").decode()
    # The ISO 7064 checksum is cheap and comes before the library's lookup of the country's account format.
    if int("".join(str(int(character, 36)) for character in compact[4:] + compact[:4])) % 97 != 1:
        return False
    try:
        # The countries' own checksums are left out: accounts that a country would refuse are still accounts.
        iban.validate(compact, check_country=False)
    except ValidationError:
        return False
    return True


def find_crypto(data: bytes) -> Iterator[Span]:
    for match in _CRYPTO.finditer(data):
        start, end = match.span()
        candidate = data[start:end].decode()
        if candidate.startswith("0x") or bitcoin.is_valid(candidate) or _is_taproot(candidate.lower()):
            yield start, end


def _is_taproot(address: str) -> bool:
    """Checks the BIP 350 checksum of an address `bc1p…`, which python-stdnum does not support yet."""
    if not address.startswith("bc1p"):
        return False
    # The values are the expanded human-readable part "bc" and then the data, both as in BIP 173.
    values = [3, 3, 0, 2, 3, *(_BECH32.index(character) for character in address[3:])]
    checksum = 1
    for value in values:
        top = checksum >> 25
        checksum = (checksum & 0x1FFFFFF) << 5 ^ value
        for bit, generator in enumerate(_BECH32_GENERATORS):
            checksum ^= generator if top >> bit & 1 else 0
    return checksum == _BECH32M
