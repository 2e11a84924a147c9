from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import re2

from gateway.guardrails.detectors.characters import Span, apart

_EXTENSION = r"(?:[ ,]{0,2}(?:x|ext\.?|extension) ?[0-9]{1,6})?"
_REST = r"(?:[ ().\-/]{0,3}[0-9])"

_INTERNATIONAL = re2.compile(
    r"(?i)(?:\+|\b00[ \-]?[1-9]|\b011[ \-][1-9]|\b001-)[ (]{0,2}[0-9]?" + _REST + "{6,14}" + _EXTENSION
)
_NORTH_AMERICAN = re2.compile(
    r"(?i)(?:\b1[ .\-])?(?:\([2-9][0-9]{2}\)[ \-]?|\b[2-9][0-9]{2}[ .\-])[2-9][0-9]{2}[ .\-][0-9]{4}"
    + _EXTENSION
    + r"\b"
)
_NATIONAL = re2.compile(r"(?:\(0[0-9]{1,4}\)|\b0[0-9]{1,4})[ \-/.](?:[ ]?[0-9]{1,4}[ \-.]?){1,4}[0-9]{2}\b")

_NUMBER = r"([+(]?[0-9]" + _REST + "{5,14}" + _EXTENSION + ")"
_LABELS = (
    r"tele?phones?|phones?|phone numbers?|tel|tlf|telef(?:on|oon|ono)\w*|t[ée]l[ée]phone|tel[ée]fono|mobile?|m[óo]vil"
    r"|mob|cell(?:ular|phone)?|celular|desk|landline|hotline|fax|whats ?app|signal|sms|handy|rufnummer|mobilfunk\w*"
    r"|call(?:ed|ing)?|dial|ring|text(?:ed)? (?:me|us|him|her|them)|reach(?:ed)?|rufen?|appele[rz]?|ll[aá]m\w+"
    r"|(?:my|his|her|our|their|your) (?:\w+ ){0,3}numbers?|(?:service|support|help|emergency|hotline) numbers?"
    r"|contact(?: (?:number|no\.?|me|us|him|her|them))?"
)
_NAMED_BEFORE = re2.compile(
    r"(?i)(?:\b(?:"
    + _LABELS
    + r")\b[^0-9+(\n]{0,32}(?::?\s{0,4})|(?:^|[\n,;|])\s*(?:ph|p|t|m|f|o|c|w|h)[.:]{1,2}\s{0,2})"
    + _NUMBER
)
# A number that continues an enumeration of numbers.
_ANOTHER = re2.compile(r"(?i)\s?(?:or|and|/|,|;|und|oder|ou|et|y|o)\s" + _NUMBER)
_NAMED_AFTER = re2.compile(
    r"(?i)(?:^|[^0-9a-z])"
    + _NUMBER
    + r"(?:[ \-(,\[]{1,3}(?:office|fax|mobile|mob|cell|home|work|tel|phone|desk|landline)"
    r"|\s(?:is|was)\s(?:my|his|her|our|their|your)\s(?:\w+\s)?(?:number|phone|mobile|cell))\b"
)
# The words of numbers that are no telephone numbers: `my account number is …`.
_OTHER_NUMBER = re2.compile(
    r"(?i)\b(?:account|acct|card|case|claim|customer (?:id|no|number)|driver\S*|id|invoice|iban"
    r"|licen[cs]e|member(?:ship)?|order|passport|policy|reference|routing|serial|ssn|tax|ticket|tracking|transaction|vat|zip)\b"
)
_ONLY_BLANKS = re2.compile(r"^[0-9 ]+$")
_SOCIAL_SECURITY = re2.compile(r"^[0-9]{3}[ .\-][0-9]{2}[ .\-][0-9]{4}$")
_ZIP_CODE = re2.compile(r"^[0-9]{5}-[0-9]{4}$")
_DATE = re2.compile(
    r"^(?:[0-9]{1,2}[ ./\-][0-9]{1,2}[ ./\-](?:[0-9]{2}|[0-9]{4})|[0-9]{4}[ ./\-][0-9]{1,2}[ ./\-][0-9]{1,2})$"
)

# National numbers with a leading zero are recognised without a label in these regions, which have the most speakers.
_REGIONS = ("GB", "DE", "FR", "IT", "AU", "IL", "IN", "BR", "ZA", "NL", "JP", "CH", "AT", "SE", "BE")
_MIN_DIGITS, _MAX_DIGITS = 7, 15
_MAX_GROUPS_AFTER = 3
_MAX_ROW, _LOOK_AHEAD = 5, 64


PHONE_PATTERNS: tuple[str, ...] = (
    _INTERNATIONAL.pattern,
    _NORTH_AMERICAN.pattern,
    _NATIONAL.pattern,
    _NAMED_BEFORE.pattern,
    _NAMED_AFTER.pattern,
)


def find_phones(data: bytes) -> Iterator[Span]:
    spans: list[Span] = []
    for match in _INTERNATIONAL.finditer(data):
        spans += _accepted(data, match.span(), sure=True)
    for match in _NORTH_AMERICAN.finditer(data):
        start, end = match.span()
        # Three groups with blanks between them may be another kind of number, so the numbering plan decides.
        found = _accepted(data, (start, end))
        if found and (not _ONLY_BLANKS.search(data[start:end]) or _is_north_american(data[start:end].decode())):
            spans += found
    for match in _NATIONAL.finditer(data):
        start, end = match.span()
        # National numbers come last, because many regions' numbering plans have to be searched.
        found = _accepted(data, (start, end))
        if found and _is_national(data[start:end].decode()):
            spans += found
    for match in _NAMED_BEFORE.finditer(data):
        if not _OTHER_NUMBER.search(data[match.start() : match.start(1)]):
            spans += _accepted_row(data, match.span(1))
    for match in _NAMED_AFTER.finditer(data):
        spans += _accepted(data, match.span(1), sure=True)
    yield from apart(spans)


def _accepted_row(data: bytes, span: Span) -> Iterator[Span]:
    for _ in range(_MAX_ROW):
        found = _accepted(data, span, sure=True)
        yield from found
        following = _ANOTHER.match(data[span[1] : span[1] + _LOOK_AHEAD]) if found else None
        if following is None:
            return
        span = span[1] + following.start(1), span[1] + following.end(1)


def _accepted(data: bytes, span: Span, *, sure: bool = False) -> list[Span]:
    """Returns the span if it stands alone and is neither a date nor too long for a telephone number.

    Groups at the end that make it too long are dropped, because another number may follow after a blank.
    """
    start, end = span
    before = data[max(0, start - 1) : start]
    if before.isalnum() or (before in (b"-", b".", b"/", b",", b"$", b"#") and not sure):
        return []
    for last in _ends(data, start, end):
        if _is_dialled(data, start, last) and (sure or not _SOCIAL_SECURITY.search(data[start:last])):
            return [(start, last)]
    return []


def _ends(data: bytes, start: int, end: int) -> Iterator[int]:
    yield end
    for _ in range(_MAX_GROUPS_AFTER):
        end = start + len(data[start:end].rstrip(b"0123456789").rstrip(b" .-/()"))
        yield end


def _is_dialled(data: bytes, start: int, end: int) -> bool:
    number = data[start:end].lower().partition(b"x")[0].partition(b"e")[0]
    digits = len(number) - len(number.translate(None, b"0123456789"))
    if data[end : end + 1].isalnum() or not _MIN_DIGITS <= digits <= _MAX_DIGITS:
        return False
    return not _DATE.search(data[start:end]) and not _ZIP_CODE.search(data[start:end])


@lru_cache(maxsize=4096)
def _is_north_american(number: str) -> bool:
    return _is_valid(number, "US")


@lru_cache(maxsize=4096)
def _is_national(number: str) -> bool:
    return any(_is_valid(number, region) for region in _REGIONS)


def _is_valid(number: str, region: str | None) -> bool:
    # Most workers never look for telephone numbers, and do without the numbering plans.
    import phonenumbers

    try:
        return phonenumbers.is_valid_number(phonenumbers.parse(number, region))
    except phonenumbers.NumberParseException:
        return False
