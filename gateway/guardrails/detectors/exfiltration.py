"""Finds links in an answer that carry conversation data to another host.

An injected instruction can make a model write an image or a link whose URL holds the conversation: the client's browser
loads the image at once, and the attacker reads his access log (Rehberger, "Data exfiltration from chatbots via markdown
images", embracethered.com, 2023). Plain links pass; so does every URL that stands in the conversation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

import re2

from gateway.guardrails.detectors.characters import Span, character_spans, encoded
from gateway.guardrails.detectors.encodings import decoded, unquoted
from gateway.guardrails.detectors.pii import find_pii

# RFC 3986, appendix B: host, path, query, fragment.
_PARTS = re.compile(r"(?:[^:/?#]+:)?//([^/?#]*)([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
_NUMBER = re.compile(r"(\d+)")
_LONG_LABEL = 16


class UrlParts(NamedTuple):
    """The decoded parts of a URL.

    `values` come from the query, the fragment and long labels of the host, `segments` from the path. `wholes` are each
    of these joined, for data that was split; the query's values are also joined in the order of their names.
    """

    values: tuple[str, ...]
    segments: tuple[str, ...]
    wholes: tuple[str, ...]


def url_parts(url: str) -> UrlParts:
    parts = _PARTS.match(url)
    if parts is None:
        return UrlParts((url,), (), ())
    authority, path, query, fragment = parts.groups("")
    named = _parameters(query) if query else []
    in_query = [value for _, value in named]
    by_name = [value for _, value in sorted(named, key=_in_order)] if len(named) > 1 else []
    segments = list(map(unquoted, path.split("/")))
    labels = _host(authority).split(".")[:-2]
    values = [*in_query, _form(fragment), *(label for label in labels if len(label) >= _LONG_LABEL)]
    wholes = map("".join, (in_query, by_name, segments, labels, values))
    return UrlParts(_each_once(values), _each_once(segments), _each_once(wholes))


def _host(authority: str) -> str:
    return authority.rpartition("@")[2].partition(":")[0].lower()


def _parameters(query: str) -> list[tuple[str, str]]:
    pieces = [piece.partition("=") for piece in query.replace(";", "&").split("&")]
    return [(name, _form(value if separator else name)) for name, separator, value in pieces]


def _form(text: str) -> str:
    return unquoted(text.replace("+", " "))


def _in_order(named: tuple[str, str]) -> list[tuple[int, str]]:
    name, _ = named
    if not _NUMBER.search(name):
        return [(-1, name)]
    return [(int(part[:18]) if part.isdecimal() else -1, part) for part in _NUMBER.split(name)]


def _each_once(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(filter(None, dict.fromkeys(values)))


class UrlForm(StrEnum):
    """A URL that loads by itself has lower thresholds."""

    IMAGE = "image"
    LINK = "link"


class ExfiltrationUrl(NamedTuple):
    """`start` and `end` count characters and enclose only the URL."""

    form: UrlForm
    start: int
    end: int


# The number of letters in a block, and the length in letters from which blocks of a conversation are searched first.
_BLOCK, _LONG = 6, 4096
_BLOCKS = re.compile("." * _BLOCK, re.DOTALL)


class ConversationIndex:
    def __init__(self, texts: Iterable[str]) -> None:
        self._texts: Sequence[str] = tuple(texts)
        self._verdicts: dict[tuple[str, UrlForm], bool] = {}

    def is_leaked_by(self, url: str, form: UrlForm) -> bool:
        """The result is cached, because a stream is searched again with the text that follows."""
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
        """The conversation cut every six letters: any eleven consecutive letters of it contain a whole block."""
        return frozenset(_BLOCKS.findall(self._letters))

    @cached_property
    def _texts_with_urls(self) -> Sequence[str]:
        return tuple(text for text in self._texts if "//" in text)

    def holds(self, text: str, *, at_least: int) -> bool:
        """Returns whether the letters and digits stand in the conversation, forwards or backwards.

        Always False for fewer than `at_least`.
        """
        letters = letters_of(text)
        return len(letters) >= at_least and (letters in self._letters or letters[::-1] in self._letters)

    def holds_some(self, letters: str, *, at_least: int) -> bool:
        if len(letters) < at_least or (at_least >= 2 * _BLOCK - 1 and self._shares_no_block(letters)):
            return False
        starts = range(0, len(letters) - at_least + 1, max(1, at_least // 2))
        return any(letters[start : start + at_least] in self._letters for start in starts)

    def _shares_no_block(self, letters: str) -> bool:
        """Cheaper than searching a long conversation for every stretch."""
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
    # Reference definitions count as images: an image may point at them from anywhere.
    (UrlForm.IMAGE, re2.compile(r"(?im)^\s{0,3}\[[^\]]+\]:\s*<?" + _URL)),
    (UrlForm.LINK, re2.compile(r"(?i)" + r"((?:https?)://[^\s\"'<>()\[\]{}|\\^`]+)")),
)
_MAX_URLS, _MAX_URL_CHARACTERS, _MAX_CACHED = 200, 16_384, 200
# The thresholds count letters and digits. A URL that loads by itself has no reason to hold a few words of the
# conversation; a link may repeat words of the question, as a search does. Spelling backwards or encoding has no honest
# reason in either.
_MIN_IN_IMAGE, _MIN_IN_LINK, _MIN_BACKWARDS, _MIN_ENCODED = 12, 40, 12, 4
# Joined parts of a URL are often words of a subject, which images share with the conversation about it.
_MIN_JOINED = 16
# The thresholds for a value that is copied whole: words, or a secret such as a password or an account number.
_MIN_WORDS, _MIN_SECRET = 8, 6
_MIN_OPAQUE = 16
_PROSE_WORDS, _PROSE_CHARACTERS = 5, 30
_SECRET = re.compile(r"(?=.*[^\W\d_])(?=.*\d).*|\d+", re.DOTALL)
_NO_LETTERS = re.compile(r"[\W_]+")
# The ASCII characters that are neither letters nor digits, as bytes.
_NO_LETTERS_ASCII = bytes(byte for byte in range(0x80) if not chr(byte).isalnum())
_SMALL = bytes(range(0x100)).lower()
_EXTENSION = re.compile(r"\.[A-Za-z]{2,5}$")
# The pattern finds words such as `iphone-15`.
_NUMBERED_WORD = re.compile(r"[^\W\d_]+[-_ ]?\d{1,4}|\d+")


def find_exfiltration(text: str, conversation: ConversationIndex) -> list[ExfiltrationUrl]:
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


def _leaks(url: str, form: UrlForm, conversation: ConversationIndex) -> bool:
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


def _image_leaks(parts: UrlParts, conversation: ConversationIndex) -> bool:
    for value in (*parts.values, *parts.segments):
        if len(value) >= _MIN_IN_IMAGE and (
            _is_prose(value) or conversation.holds_some(letters_of(value), at_least=_MIN_IN_IMAGE)
        ):
            return True
    names = (_EXTENSION.sub("", segment) for segment in parts.segments)
    secrets = (name for name in names if _SECRET.fullmatch(name) and not _NUMBERED_WORD.fullmatch(name))
    return any(_is_copied_whole(value, conversation) for value in (*parts.values, *secrets))


def _is_copied_whole(value: str, conversation: ConversationIndex) -> bool:
    """A single word may be an option of the server; several words, or letters with digits, are copied."""
    if _SECRET.fullmatch(value):
        return conversation.holds(value, at_least=_MIN_SECRET)
    return len(value.split()) > 1 and conversation.holds(value, at_least=_MIN_WORDS)


def _encodes_text(value: str, conversation: ConversationIndex) -> bool:
    return any(len(text) >= _MIN_OPAQUE or conversation.holds(text, at_least=_MIN_ENCODED) for text in decoded(value))


def _names_personal_data(text: str, conversation: ConversationIndex) -> bool:
    return any(conversation.holds(text[entity.start : entity.end], at_least=6) for entity in find_pii(text))


def _is_prose(value: str) -> bool:
    return len(value) >= _PROSE_CHARACTERS and len(value.split()) >= _PROSE_WORDS


def letters_of(text: str) -> str:
    if text.isascii():
        return text.encode().translate(_SMALL, _NO_LETTERS_ASCII).decode()
    return _NO_LETTERS.sub("", text.casefold())
