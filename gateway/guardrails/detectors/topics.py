from __future__ import annotations

from functools import lru_cache

import re2

from gateway.guardrails.detectors.characters import encoded, plain
from gateway.guardrails.detectors.invisible import is_disguised, readings
from gateway.guardrails.detectors.matching import PatternSet
from gateway.guardrails.detectors.reading import as_written
from gateway.guardrails.detectors.spelling import new_sentences, respellings, undone

_BORDER_BEFORE, _BORDER_AFTER = r"(?:^|[^\pL\pN_])", r"(?:$|[^\pL\pN_])"
# These scripts put no blanks between words: Chinese, Japanese, Thai, Lao, Khmer, Burmese.
_UNSPACED = re2.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")
_REMEMBERED_LISTS, _REMEMBERED_TOPICS = 512, 2048


def find_topics(text: str, topics: tuple[str, ...]) -> list[str]:
    if not topics:
        return []
    written = undone(text)
    words = plain(written)
    # A text may hide the same words many times, which are searched once. A topic may have signs that are undone.
    texts = {words} if written == text else {words, plain(text)}
    if others := respellings(words):
        texts.add(new_sentences(words, others))
    if is_disguised(written, encoded(written)):
        texts.update(plain(reading.text) for reading in readings(as_written(written)))
    found = {topic for one in texts for topic in _named(one, topics)}
    return [topic for topic in topics if topic in found]


def _named(text: str, topics: tuple[str, ...]) -> set[str]:
    data = encoded(text.casefold())
    # The border patterns are classes of many thousand letters, so they are used only for a phrase that occurs.
    phrases = (topics[index] for index in _phrases(topics).matching(data))
    return {topic for topic in phrases if _whole(topic).search(data)}


@lru_cache(maxsize=_REMEMBERED_LISTS)
def _phrases(topics: tuple[str, ...]) -> PatternSet:
    return PatternSet([_phrase(_words(topic)) for topic in topics], group=64)


@lru_cache(maxsize=_REMEMBERED_TOPICS)
def _whole(topic: str) -> re2._Regexp:
    words = _words(topic)
    return re2.compile(_border(_BORDER_BEFORE, words[0][0]) + _phrase(words) + _border(_BORDER_AFTER, words[-1][-1]))


def _words(topic: str) -> list[str]:
    return plain(topic).casefold().split()


def _phrase(words: list[str]) -> str:
    return r"\s+".join(re2.escape(word) for word in words) or r"[^\s\S]"


def _border(border: str, character: str) -> str:
    if not (character.isalnum() or character == "_") or _UNSPACED.search(character):
        return ""
    return border
