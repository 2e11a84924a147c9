from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from gateway.guardrails.detectors.characters import plain
from gateway.guardrails.detectors.invisible import with_blanks
from gateway.guardrails.detectors.topics import find_topics

# A word is checked when it has ended or has this many letters, because some scripts write no spaces between words.
_MAX_WORD = 128
# Blanks and invisible characters may stretch a phrase by this many characters.
_STRETCH, _LOOK_BACK_FACTOR, _LOOK_BACK = 16, 4, 256


class _Phrases(NamedTuple):
    prefixes: frozenset[str]
    first_characters: frozenset[str]
    max_length: int


class TopicGate:
    def __init__(self, topics: tuple[str, ...]) -> None:
        self._topics = topics
        self._phrases = _phrases(topics)
        self._tail = ""
        self._before = 0  # `_before` counts the characters of the text that were dropped from `_tail`.
        self._checked = 0  # `_checked` counts the characters of `_tail` that have been checked.
        self.found: list[str] = []

    def feed(self, text: str, *, final: bool = False) -> int:
        """Returns how many characters of the whole text may go out: none of them begins an incomplete phrase."""
        self._tail += text
        end = len(self._tail) if final else _end_of_words(self._tail)
        if end > self._checked:
            self.found += find_topics(self._tail[:end], self._topics)
            self._checked = end
        may_go = self._before + (end if final else self._held_from(end))
        self._trim()
        return may_go

    def _held_from(self, end: int) -> int:
        tail, phrases = self._tail, self._phrases
        for start in range(max(0, end - phrases.max_length - _STRETCH), end):
            first = tail[start] if tail[start].isascii() else plain(tail[start])
            if first.casefold()[:1] in phrases.first_characters and self._may_become_a_phrase(tail[start:end]):
                return start
        return end

    def _may_become_a_phrase(self, text: str) -> bool:
        prefixes = self._phrases.prefixes
        return _normal(text) in prefixes or (not text.isascii() and _normal(with_blanks(text)) in prefixes)

    def _trim(self) -> None:
        start = self._checked - _LOOK_BACK_FACTOR * self._phrases.max_length - _LOOK_BACK
        if start < _LOOK_BACK:
            return
        # The tail is cut at the end of a word, because the rest of a word would look like a whole one.
        while start < self._checked and _in_word(self._tail[start]):
            start += 1
        self._tail, self._before, self._checked = self._tail[start:], self._before + start, self._checked - start


def _end_of_words(text: str) -> int:
    end = len(text)
    while end > 0 and _in_word(text[end - 1]):
        end -= 1
        if len(text) - end >= _MAX_WORD:
            return len(text)
    return end


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _normal(text: str) -> str:
    return " ".join(plain(text).casefold().split())


@lru_cache(maxsize=512)
def _phrases(topics: tuple[str, ...]) -> _Phrases:
    normal = [_normal(topic) for topic in topics]
    prefixes = frozenset(phrase[:end].rstrip() for phrase in normal for end in range(1, len(phrase) + 1))
    max_length = max((len(phrase) for phrase in (*normal, *topics)), default=0)
    return _Phrases(prefixes, frozenset(phrase[:1] for phrase in normal), max_length)
