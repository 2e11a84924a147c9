"""Phrases that a project does not want to hear or to say."""

from __future__ import annotations

from functools import lru_cache

import re2

from gateway.guardrails.detectors.characters import encoded, plain
from gateway.guardrails.detectors.matching import PatternSet

_BORDER_BEFORE, _BORDER_AFTER = r"(?:^|[^\pL\pN_])", r"(?:$|[^\pL\pN_])"
# Scripts that put no blanks between words: Chinese, Japanese, Thai, Lao, Khmer, Burmese.
_UNSPACED = re2.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")
_REMEMBERED_LISTS = 512


def find_topics(text: str, topics: tuple[str, ...]) -> list[str]:
    """Those of `topics` that the text names, as whole words, in any case and spacing, in the order of the list."""
    if not topics:
        return []
    return [topics[index] for index in _matcher(topics).matching(encoded(plain(text).casefold()))]


@lru_cache(maxsize=_REMEMBERED_LISTS)
def _matcher(topics: tuple[str, ...]) -> PatternSet:
    return PatternSet([_pattern(topic) for topic in topics], group=128)


def _pattern(topic: str) -> str:
    words = plain(topic).casefold().split()
    phrase = r"\s+".join(re2.escape(word) for word in words)
    if not words:
        return r"[^\s\S]"
    return _border(_BORDER_BEFORE, words[0][0]) + phrase + _border(_BORDER_AFTER, words[-1][-1])


def _border(border: str, character: str) -> str:
    """None beside a sign (`C++`) and where the script has none."""
    if not (character.isalnum() or character == "_") or _UNSPACED.search(character):
        return ""
    return border
