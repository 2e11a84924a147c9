from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import re2
from stdnum.us import ssn

from gateway.guardrails.detectors.characters import Span

# Both separators are the same; the pattern lists them because RE2 has no back-references. Nine bare digits count only
# beside a word for the number.
_WRITTEN = re2.compile(r"\b(?:[0-9]{3}-[0-9]{2}-[0-9]{4}|[0-9]{3} [0-9]{2} [0-9]{4}|[0-9]{3}\.[0-9]{2}\.[0-9]{4})\b")
_NAMED = re2.compile(r"(?i)\b(?:ssn|ss#|social security(?: number| no\.?| #)?)[^0-9\n]{0,20}\b([0-9]{9})\b")

# An answer that is nothing but the number needs no separators, because the request was for that number.
_ANSWER = re2.compile(r"^\s*[0-9]{3}-?[0-9]{2}-?[0-9]{4}(?:[\s,;]+[0-9]{3}-?[0-9]{2}-?[0-9]{4})*\s*$")
_NUMBER = re2.compile(r"[0-9]{3}-?[0-9]{2}-?[0-9]{4}")

# The names of a taxpayer number, which stand before or behind digits without separators.
_TAXPAYER = (
    r"(?:i?tins?\b|(?:individual |personal )?tax(?:payer)?(?:['\x{2019}]?s)? ?(?:id(?:entification|entifier)?s?)\b"
    r"|identificaci[oó]n (?:personal |individual |fiscal )?(?:del? )?contribuyente)"
)
_BARE_ITIN = r"(9[0-9]{2}-?[0-9]{2}-?[0-9]{4})"
_NAMED_ITIN = (
    re2.compile(rf"(?i)\b{_TAXPAYER}[^0-9\n]{{0,32}}\b{_BARE_ITIN}\b"),
    re2.compile(
        rf"(?i)\b{_BARE_ITIN}[ ,(]{{1,3}}(?:(?:is|was|as|es|my|his|her|their|the|an?|mi|su|el) ){{0,3}}{_TAXPAYER}"
    ),
)

# The middle digits that are issued: https://www.irs.gov/irm/part3/irm_03-021-263r (python-stdnum stops at 70).
_ITIN_GROUPS = frozenset((*range(50, 66), *range(70, 89), *range(90, 93), *range(94, 100)))


SSN_PATTERNS: tuple[str, ...] = (_WRITTEN.pattern, _NAMED.pattern, _ANSWER.pattern)
# All ITINs begin with a 9: a text where no number does is not searched.
ITIN_PATTERNS: tuple[str, ...] = (
    r"\b9[0-9]{2}[ .-][0-9]{2}[ .-][0-9]{4}\b",
    r"^[0-9\s,;-]*\b9[0-9]{2}-?[0-9]{2}-?[0-9]{4}\b[0-9\s,;-]*$",
    *(pattern.pattern for pattern in _NAMED_ITIN),
)


def find_ssns(data: bytes) -> Iterator[Span]:
    if _ANSWER.search(data):
        yield from (match.span() for match in _NUMBER.finditer(data) if ssn.is_valid(_dashed(data, match.span())))
        return
    written = [span for span in _found(data) if ssn.is_valid(_dashed(data, span))]
    if b"S" in data or b"s" in data:
        named = [match.span(1) for match in _NAMED.finditer(data) if ssn.is_valid(_dashed(data, match.span(1)))]
        written = sorted({*written, *named})
    yield from written


def find_itins(data: bytes) -> Iterator[Span]:
    spans = {span for span in _found(data) if _is_itin(data, span)}
    if b"I" in data or b"i" in data:
        for match in chain.from_iterable(pattern.finditer(data) for pattern in _NAMED_ITIN):
            if data[max(0, match.start(1) - 1) : match.start(1)] != b"-" and _is_itin(data, match.span(1)):
                spans.add(match.span(1))
    if _ANSWER.search(data):
        spans |= {match.span() for match in _NUMBER.finditer(data) if _is_itin(data, match.span())}
    yield from sorted(spans)


def _is_itin(data: bytes, span: Span) -> bool:
    number = _dashed(data, span)
    return number.startswith("9") and int(number[4:6]) in _ITIN_GROUPS


def _found(data: bytes) -> Iterator[Span]:
    for match in _WRITTEN.finditer(data):
        start, end = match.span()
        # The match is a part of a longer number.
        if data[max(0, start - 1) : start] in (b"-", b".", b"+") or data[end : end + 1] == b"-":
            continue
        if data[end : end + 1] == b"." and data[end + 1 : end + 2].isdigit():
            continue
        yield start, end


def _dashed(data: bytes, span: Span) -> str:
    digits = data[span[0] : span[1]].translate(None, b" .-").decode()
    return f"{digits[:3]}-{digits[3:5]}-{digits[5:]}"
