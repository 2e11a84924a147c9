"""Finds invisible characters: inside words and numbers, between them, or spelling a text of their own.

A text with such characters can be read in several ways, and is searched in each: without them; with a blank in their
place, since a line may break at a zero-width space; as a bidirectional override shows it; and as the letters that tag
characters or variation selectors spell ("ASCII smuggling": Rehberger 2024; Butler 2025), which models can read.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator

import re2

from gateway.guardrails.detectors.reading import Reading

# The ranges are Default_Ignorable_Code_Point of Unicode 16 (DerivedCoreProperties.txt), other format characters (Cf),
# control characters that break no line, and the empty Braille pattern.
_RANGES = (
    (0x00, 0x08), (0x0E, 0x1B), (0x7F, 0x84), (0x86, 0x9F), (0xAD, 0xAD), (0x034F, 0x034F), (0x0600, 0x0605),
    (0x061C, 0x061C), (0x06DD, 0x06DD), (0x070F, 0x070F), (0x0890, 0x0891), (0x08E2, 0x08E2), (0x115F, 0x1160),
    (0x17B4, 0x17B5), (0x180B, 0x180F), (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x2800, 0x2800),
    (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFFB), (0x110BD, 0x110BD),
    (0x110CD, 0x110CD), (0x13430, 0x13438), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip
# The content of a character class, for RE2 and the standard library alike.
INVISIBLE = "".join(re.escape(chr(first)) + "-" + re.escape(chr(last)) for first, last in _RANGES)

_RUN = re.compile(f"[{INVISIBLE}]+")
# Invisible characters beside an emoji, or at a text's ends, are harmless and common.
_BESIDE = r"[ -~\pL\pN]"
_WITHIN = re2.compile(
    f"{_BESIDE}[{INVISIBLE}]+{_BESIDE}|[\U000e0020-\U000e007e]|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{{4}}|\u202e"
)
_CONTROLS = bytes((*range(0x09), *range(0x0E, 0x1C), 0x7F))
_WITHOUT_CONTROLS = dict.fromkeys(_CONTROLS)

_OVERRIDDEN = re.compile("\u202e([^\u202a-\u202e\u2066-\u2069\n]*)")
# The flags of England, Scotland and others are tag characters that end with a cancel tag.
_TAGS = re.compile("\U0001f3f4[\U000e0020-\U000e007e]{1,8}\U000e007f|([\U000e0020-\U000e007e])")
_TAG_RUN = re.compile("[\U000e0020-\U000e007e]{6,}")
_TAG_BASE = 0xE0000
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4,}")
# Fewer hidden characters than this may stand in a text by chance.
_MIN_HIDDEN = 8


def without_invisible(text: str) -> str:
    if text.isascii():
        return text.translate(_WITHOUT_CONTROLS)
    return _RUN.sub("", text)


def with_blanks(text: str) -> str:
    return _RUN.sub(" ", text)


def is_disguised(text: str, data: bytes) -> bool:
    if len(data) == len(text) == len(data.translate(None, _CONTROLS)):
        return False
    return _WITHIN.search(data) is not None


def readings(written: Reading) -> Iterator[Reading]:
    yield _reading_with(written, "")
    yield _reading_with(written, " ")
    text = written.text
    if "\u202e" in text:
        yield _as_shown(written)
    for match in _TAG_RUN.finditer(text):
        yield _spelled(written, match, "".join(chr(ord(tag) - _TAG_BASE) for tag in match[0]))
    for match in _SELECTORS.finditer(text):
        # Each byte is decoded to one letter: the detectors look for ASCII, and so every letter keeps its offset.
        yield _spelled(written, match, bytes(map(_selected, match[0])).decode("latin-1"))


def hides_text(text: str) -> bool:
    if text.isascii():
        return False
    if sum(match[1] is not None for match in _TAGS.finditer(text)) >= _MIN_HIDDEN:
        return True
    return any(len(match[0]) >= _MIN_HIDDEN for match in _SELECTORS.finditer(text))


def _reading_with(written: Reading, instead: str) -> Reading:
    return written.substituted(_RUN, lambda _: instead)


def _as_shown(written: Reading) -> Reading:
    places = array("I")
    at = 0
    for match in _OVERRIDDEN.finditer(written.text):
        places.extend(range(at, match.start()))
        places.extend(range(match.end() - 1, match.start(1) - 1, -1))
        at = match.end()
    places.extend(range(at, len(written.text)))
    text = "".join(map(written.text.__getitem__, places))
    starts, ends = (array("I", map(spans.__getitem__, places)) for spans in (written.starts, written.ends))
    return _reading_with(Reading(text, starts, ends), "")


def _spelled(written: Reading, match: re.Match[str], letters: str) -> Reading:
    first, last = match.span()
    return Reading(letters, written.starts[first:last], written.ends[first:last])


def _selected(selector: str) -> int:
    code = ord(selector)
    return code - 0xFE00 if code <= 0xFE0F else code - 0xE0100 + 16
