"""Links in an answer that carry away what was said.

An injected order can make a model write an image or a link whose address holds the conversation: the client's browser
loads the image at once, and the attacker reads his access log (Rehberger, "Data exfiltration from chatbots via
markdown images", embracethered.com, 2023). Plain links pass; so does every address that stands in the conversation.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple
from urllib.parse import unquote, unquote_plus, urlsplit

import re2

from gateway.guardrails.detectors.characters import Span, character_spans, encoded
from gateway.guardrails.detectors.pii import find_pii


class UrlForm(StrEnum):
    """How an address stands in the text: what loads by itself is judged more strictly."""

    IMAGE = "image"
    LINK = "link"


class ExfiltrationUrl(NamedTuple):
    """`start` and `end` count characters and enclose the address alone."""

    form: UrlForm
    start: int
    end: int


class Conversation:
    """What was said, prepared on first use for many questions."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts: Sequence[str] = tuple(texts)

    @cached_property
    def _letters(self) -> str:
        return "\n".join(_letters(text) for text in self._texts)

    def holds(self, text: str, *, at_least: int) -> bool:
        """Whether its letters and digits were said, in this order; never for fewer than `at_least` of them."""
        letters = _letters(text)
        return len(letters) >= at_least and letters in self._letters

    def holds_some(self, text: str, *, at_least: int) -> bool:
        """Whether any stretch of `at_least` letters and digits was said."""
        letters = _letters(text)
        step = max(1, at_least // 2)
        return any(
            letters[index : index + at_least] in self._letters for index in range(0, len(letters) - at_least + 1, step)
        )

    def holds_url(self, url: str) -> bool:
        return any(url in text for text in self._texts)


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
_ENCODED = re2.compile(r"[A-Za-z0-9+/_-]{12,}={0,2}")
_MAX_URLS, _MAX_URL_CHARACTERS = 200, 16_384
# Letters and digits. An address that loads by itself has no business with a few words of the conversation; a link may
# name what was asked for, as a search does.
_SAID_IN_IMAGE, _SAID_IN_LINK, _SAID_ENCODED = 12, 40, 6
_OPAQUE_TEXT = 16
_PROSE_WORDS, _PROSE_CHARACTERS = 5, 30


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
    carrying = [
        span
        for span in sorted(found)
        if _carries(data[span[0] : span[1]].decode("utf-8", "replace"), found[span], conversation)
    ]
    spans = character_spans(data, carrying)
    return [ExfiltrationUrl(found[span], *place) for span, place in zip(carrying, spans, strict=True)]


def _carries(url: str, form: UrlForm, conversation: Conversation) -> bool:
    url = url[:_MAX_URL_CHARACTERS].rstrip(".,;:!?")
    if conversation.holds_url(url):
        return False
    for value in _values(url):
        if _encodes_text(value, conversation) or _names_personal_data(value, conversation):
            return True
        if form is UrlForm.IMAGE and (_is_prose(value) or conversation.holds_some(value, at_least=_SAID_IN_IMAGE)):
            return True
        if form is UrlForm.LINK and conversation.holds_some(value, at_least=_SAID_IN_LINK):
            return True
    return False


def _values(url: str) -> Iterator[str]:
    """What of the address somebody chose: values of the query, segments of the path, the fragment, long host labels."""
    try:
        parts = urlsplit(url)
    except ValueError:
        yield url
        return
    for piece in parts.query.replace(";", "&").split("&"):
        name, separator, value = piece.partition("=")
        yield unquote_plus(value if separator else name)
    yield from (unquote(segment) for segment in parts.path.split("/") if len(segment) >= _SAID_IN_IMAGE)
    yield unquote_plus(parts.fragment)
    yield from (label for label in (parts.hostname or "").split(".")[:-2] if len(label) >= _OPAQUE_TEXT)


def _encodes_text(value: str, conversation: Conversation) -> bool:
    """Base64 or hexadecimal of something readable: long enough, or said before."""
    for match in _ENCODED.finditer(encoded(value)):
        for text in _decoded(match.group()):
            if len(text) >= _OPAQUE_TEXT or conversation.holds(text, at_least=_SAID_ENCODED):
                return True
    return False


def _decoded(candidate: bytes) -> Iterator[str]:
    bare = candidate.rstrip(b"=").translate(bytes.maketrans(b"-_", b"+/"))
    if len(bare) % 4 != 1:
        yield from _readable(base64.b64decode(bare + b"=" * (-len(bare) % 4)))
    try:
        yield from _readable(binascii.unhexlify(candidate))
    except ValueError:
        return


def _readable(data: bytes) -> Iterator[str]:
    """Random bytes are hardly ever printable text from end to end."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return
    if text.isprintable() or text.replace("\n", " ").replace("\r", " ").replace("\t", " ").isprintable():
        yield text


def _names_personal_data(value: str, conversation: Conversation) -> bool:
    if not any(character.isdigit() or character == "@" for character in value):
        return False
    return any(conversation.holds(value[entity.start : entity.end], at_least=6) for entity in find_pii(value))


def _is_prose(value: str) -> bool:
    return len(value) >= _PROSE_CHARACTERS and len(value.split()) >= _PROSE_WORDS


def _letters(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum())
