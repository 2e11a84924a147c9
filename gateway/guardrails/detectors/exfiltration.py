"""Links in an answer that carry away what was said.

An injected order can make a model write an image or a link whose address holds the conversation: the client's browser
loads the image at once, and the attacker reads his access log (Rehberger, "Data exfiltration from chatbots via
markdown images", embracethered.com, 2023). Plain links pass; so does every address that stands in the conversation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

import re2

from gateway.guardrails.detectors.characters import Span, character_spans, encoded
from gateway.guardrails.detectors.encodings import decoded
from gateway.guardrails.detectors.pii import find_pii
from gateway.guardrails.detectors.url_parts import UrlParts, url_parts


class UrlForm(StrEnum):
    """How an address stands in the text: what loads by itself is judged more strictly."""

    IMAGE = "image"
    LINK = "link"


class ExfiltrationUrl(NamedTuple):
    """`start` and `end` count characters and enclose the address alone."""

    form: UrlForm
    start: int
    end: int


# Letters, from which on a conversation is long.
_BLOCK, _LONG = 6, 4096
_BLOCKS = re.compile("." * _BLOCK, re.DOTALL)


class Conversation:
    """What was said, prepared on first use for many questions. `letters` are what `letters_of` gives."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts: Sequence[str] = tuple(texts)
        self._verdicts: dict[tuple[str, UrlForm], bool] = {}

    def is_leaked_by(self, url: str, form: UrlForm) -> bool:
        """Whether the address carries some of it away. Remembered: a stream is read again with what follows."""
        verdict = self._verdicts.get((url, form))
        if verdict is None:
            if len(self._verdicts) >= _MAX_CACHED:
                self._verdicts.clear()
            verdict = self._verdicts[url, form] = _leaks(url, form, self)
        return verdict

    @cached_property
    def _letters(self) -> str:
        return "\n".join(map(letters_of, self._texts))

    @cached_property
    def _blocks(self) -> frozenset[str]:
        """What was said, cut every six letters: of eleven letters in a row that were said, one of these is a part."""
        return frozenset(_BLOCKS.findall(self._letters))

    @cached_property
    def _texts_with_urls(self) -> Sequence[str]:
        return tuple(text for text in self._texts if "//" in text)

    def holds(self, text: str, *, at_least: int) -> bool:
        """Whether its letters and digits were said, in this order or backwards; never for fewer than `at_least`."""
        letters = letters_of(text)
        return len(letters) >= at_least and (letters in self._letters or letters[::-1] in self._letters)

    def holds_some(self, letters: str, *, at_least: int) -> bool:
        """Whether any stretch of `at_least` letters and digits was said."""
        if len(letters) < at_least or (at_least >= 2 * _BLOCK - 1 and self._shares_no_block(letters)):
            return False
        starts = range(0, len(letters) - at_least + 1, max(1, at_least // 2))
        return any(letters[start : start + at_least] in self._letters for start in starts)

    def _shares_no_block(self, letters: str) -> bool:
        """Where much was said, this is quicker to see than to search all of it for every stretch."""
        if len(self._letters) < _LONG:
            return False
        return self._blocks.isdisjoint([letters[start : start + _BLOCK] for start in range(len(letters) - _BLOCK + 1)])

    def holds_url(self, url: str) -> bool:
        return any(url in text for text in self._texts_with_urls)


_URL = r"((?:https?:)?//[^\s\"'<>()\[\]{}|\\^`]+)"
_PATTERNS = (
    (UrlForm.IMAGE, re2.compile(r"(?i)!\[[^\]]*\]\(\s*<?" + _URL)),
    (
        UrlForm.IMAGE,
        re2.compile(r"(?i)<(?:img|image|iframe|video|audio|source|embed|object|link|script)\s[^>]*?" + _URL),
    ),
    (UrlForm.IMAGE, re2.compile(r"(?i)url\(\s*[\"']?" + _URL)),
    # Reference definitions: an image may point at them from anywhere.
    (UrlForm.IMAGE, re2.compile(r"(?im)^\s{0,3}\[[^\]]+\]:\s*<?" + _URL)),
    (UrlForm.LINK, re2.compile(r"(?i)" + r"((?:https?)://[^\s\"'<>()\[\]{}|\\^`]+)")),
)
_MAX_URLS, _MAX_URL_CHARACTERS, _MAX_CACHED = 200, 16_384, 200
# Letters and digits. An address that loads by itself has no business with a few words of the conversation; a link may
# name what was asked for, as a search does. Nobody spells it backwards or encodes it without a reason.
_MIN_IN_IMAGE, _MIN_IN_LINK, _MIN_BACKWARDS, _MIN_ENCODED = 12, 40, 12, 4
# Put together, parts of an address are words of a subject, which images share with what is spoken of.
_MIN_JOINED = 16
# What is all of a value: words, or what looks like a password or a number that somebody keeps.
_MIN_WORDS, _MIN_SECRET = 8, 6
_MIN_OPAQUE = 16
_PROSE_WORDS, _PROSE_CHARACTERS = 5, 30
_SECRET = re.compile(r"(?=.*[^\W\d_])(?=.*\d).*|\d+", re.DOTALL)
_NO_LETTERS = re.compile(r"[\W_]+")
# The same for ASCII.
_NO_LETTERS_ASCII = bytes(byte for byte in range(0x80) if not chr(byte).isalnum())
_SMALL = bytes(range(0x100)).lower()
_EXTENSION = re.compile(r"\.[A-Za-z]{2,5}$")
# `iphone-15`
_NUMBERED_WORD = re.compile(r"[^\W\d_]+[-_ ]?\d{1,4}|\d+")


def find_exfiltration(text: str, conversation: Conversation) -> list[ExfiltrationUrl]:
    """Addresses that carry conversation data, in order, each once."""
    if "//" not in text:
        return []
    data = encoded(text)
    found: dict[Span, UrlForm] = {}
    for form, pattern in _PATTERNS:
        for match in pattern.finditer(data):
            if len(found) >= _MAX_URLS:
                break
            found.setdefault(match.span(1), form)
    leaking = [
        span
        for span in sorted(found)
        if conversation.is_leaked_by(data[span[0] : span[1]].decode("utf-8", "replace"), found[span])
    ]
    spans = character_spans(data, leaking)
    return [ExfiltrationUrl(found[span], *place) for span, place in zip(leaking, spans, strict=True)]


def _leaks(url: str, form: UrlForm, conversation: Conversation) -> bool:
    url = url[:_MAX_URL_CHARACTERS].rstrip(".,;:!?")
    if conversation.holds_url(url):
        return False
    parts = url_parts(url)
    text = "\n".join(dict.fromkeys((*parts.values, *parts.segments, *parts.wholes)))
    if _encodes_text(text, conversation) or _names_personal_data(text, conversation):
        return True
    wholes = [letters_of(whole) for whole in parts.wholes if len(whole) >= _MIN_BACKWARDS]
    if any(conversation.holds_some(letters[::-1], at_least=_MIN_BACKWARDS) for letters in wholes):
        return True
    at_least = _MIN_IN_LINK if form is UrlForm.LINK else _MIN_JOINED
    if any(conversation.holds_some(letters, at_least=at_least) for letters in wholes):
        return True
    return form is UrlForm.IMAGE and _image_leaks(parts, conversation)


def _image_leaks(parts: UrlParts, conversation: Conversation) -> bool:
    for value in (*parts.values, *parts.segments):
        if len(value) >= _MIN_IN_IMAGE and (
            _is_prose(value) or conversation.holds_some(letters_of(value), at_least=_MIN_IN_IMAGE)
        ):
            return True
    names = (_EXTENSION.sub("", segment) for segment in parts.segments)
    secrets = (name for name in names if _SECRET.fullmatch(name) and not _NUMBERED_WORD.fullmatch(name))
    return any(_is_copied_whole(value, conversation) for value in (*parts.values, *secrets))


def _is_copied_whole(value: str, conversation: Conversation) -> bool:
    """A word alone may be an option of the server's; several, or letters with digits, are not."""
    if _SECRET.fullmatch(value):
        return conversation.holds(value, at_least=_MIN_SECRET)
    return len(value.split()) > 1 and conversation.holds(value, at_least=_MIN_WORDS)


def _encodes_text(value: str, conversation: Conversation) -> bool:
    """Something readable: long enough, or said before."""
    return any(len(text) >= _MIN_OPAQUE or conversation.holds(text, at_least=_MIN_ENCODED) for text in decoded(value))


def _names_personal_data(text: str, conversation: Conversation) -> bool:
    return any(conversation.holds(text[entity.start : entity.end], at_least=6) for entity in find_pii(text))


def _is_prose(value: str) -> bool:
    return len(value) >= _PROSE_CHARACTERS and len(value.split()) >= _PROSE_WORDS


def letters_of(text: str) -> str:
    """Its letters and digits, in small letters."""
    if text.isascii():
        return text.encode().translate(_SMALL, _NO_LETTERS_ASCII).decode()
    return _NO_LETTERS.sub("", text.casefold())
