"""Parses a search query into terms, and terms into the tokens of the text indexes. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from analytics.clickhouse.text_index import FOLDED_LETTERS, IDEOGRAPHS, LETTERS, MEETING, UNSPACED

# A term is a part in double quotes, else a word between blanks. A single quote mark is an ordinary character.
_PART = re.compile(r'"([^"]+)"|(\S+)')
# A shorter term is in nearly every text.
_MIN_CHARACTERS = 3
# Further tokens hardly narrow a search, and each is looked up in every part of the index.
_MAX_TOKENS = 24
# For each of these the vocabulary is asked, and the words it has are asked for.
_MAX_PARTS = 8
# A word as the index has them: whatever is not ASCII belongs to one.
_WORD = re.compile(r"[0-9A-Za-z\u0080-\U0010FFFF]+")


@dataclass(frozen=True)
class Part:
    """A part of a word of a text: its beginning, its end, or any, when it is `open` on the other sides."""

    text: str
    open_before: bool
    open_after: bool


@dataclass(frozen=True)
class Tokens:
    """What to look up in the indexes of `analytics.clickhouse.text_index`; all empty if they cannot help. `is_indexed`
    is True for terms that texts probably have, though the indexes do not know them."""

    words: list[str]
    pairs: list[str]
    parts: list[Part]
    unspaced: list[str]
    is_indexed: bool

    def __bool__(self) -> bool:
        return self.is_indexed


def parse(query: str) -> list[str]:
    found = (quoted or word for quoted, word in _PART.findall(query))
    return list(dict.fromkeys(term for term in found if term.strip()))


def tokens(folded_terms: Sequence[str]) -> Tokens:
    """Tokens of case-folded terms. A text with all terms has all tokens; the reverse need not hold."""
    spaced = [_without_unspaced(term) for term in folded_terms if len(term) >= _MIN_CHARACTERS]
    by_term = [[_part(word) for word in _WORD.finditer(term)] for term in spaced]
    found = [part for parts in by_term for part in parts]
    pairs = [_meeting(*pair) for parts in by_term for pair in pairwise(parts) if _is_known(*pair)]
    words = [part.text for part in found if not (part.open_before or part.open_after)]
    parts = [part for part in dict.fromkeys(found) if part.open_before or part.open_after]
    longest = sorted((part for part in parts if len(part.text) >= LETTERS), key=lambda part: -len(part.text))
    unspaced = [pair for term in folded_terms for pair in _runs(term, IDEOGRAPHS) if all(map(_is_unspaced, pair))]
    return Tokens(_some(words), _some(pairs), longest[:_MAX_PARTS], _some(unspaced), bool(found or unspaced))


def letters(part: Part) -> list[str]:
    return _some(_runs(part.text, LETTERS))


def fold(text: str) -> str:
    """Folds case as `text_index.folded` does, character by character, so that offsets stay the same."""
    return "".join(map(_fold_character, text))


def occurrences(text: str, folded_terms: Iterable[str]) -> list[tuple[int, int]]:
    """The terms' places as (start, end) in characters, adjacent ones joined."""
    folded = fold(text)
    spots = sorted(
        (match.start(), match.end()) for term in folded_terms for match in re.finditer(re.escape(term), folded)
    )
    joined: list[tuple[int, int]] = []
    for start, end in spots:
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _fold_character(character: str) -> str:
    lowered = character.lower()
    for found, becomes in FOLDED_LETTERS:
        lowered = lowered.replace(found, becomes)
    return lowered if len(lowered) == 1 else character


def _runs(text: str, length: int) -> list[str]:
    return [text[start : start + length] for start in range(len(text) - length + 1)]


def _without_unspaced(term: str) -> str:
    return "".join(" " if _is_unspaced(character) else character for character in term)


def _part(word: re.Match[str]) -> Part:
    """A word is open where its term ends: a text may go on with letters there."""
    return Part(word[0], word.start() == 0, word.end() == len(word.string))


def _is_known(before: Part, after: Part) -> bool:
    return not ((before.open_before and len(before.text) < MEETING) or (after.open_after and len(after.text) < MEETING))


def _meeting(before: Part, after: Part) -> str:
    return f"{before.text[-MEETING:]} {after.text[:MEETING]}"


def _is_unspaced(character: str) -> bool:
    return any(first <= ord(character) <= last for first, last in UNSPACED)


def _some(found: list[str]) -> list[str]:
    distinct = list(dict.fromkeys(found))
    if len(distinct) <= _MAX_TOKENS:
        return distinct
    return [distinct[index * len(distinct) // _MAX_TOKENS] for index in range(_MAX_TOKENS)]
