"""Parses a search query into terms, and terms into the tokens of the text indexes. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from analytics.clickhouse.text_index import FEW_LETTERS, FOLDED_LETTERS, IDEOGRAPHS, LETTERS, UNSPACED

# A term is a part in double quotes, else a word between blanks. A single quote mark is an ordinary character.
_PART = re.compile(r'"([^"]+)"|(\S+)')
# Further tokens hardly narrow a search, and each is looked up in every part of the index.
_MAX_TOKENS = 24
# The maximum number of terms of three characters: each costs a hundred look-ups.
_MAX_FEW_LETTERS = 3


@dataclass(frozen=True)
class Tokens:
    """The tokens to look up in the indexes of `analytics.clickhouse.text_index`; all empty when those cannot help."""

    letters: list[str]
    few_letters: list[str]
    unspaced: list[str]

    def __bool__(self) -> bool:
        return bool(self.letters or self.few_letters or self.unspaced)


def parse(query: str) -> list[str]:
    """Returns the words and the quoted parts of a query, each once."""
    found = (quoted or word for quoted, word in _PART.findall(query))
    return list(dict.fromkeys(term for term in found if term.strip()))


def tokens(folded_terms: Sequence[str]) -> Tokens:
    """Returns tokens of case-folded terms. A text with all terms has all tokens; the reverse need not hold."""
    letters = [token for term in folded_terms for token in _runs(term, LETTERS)]
    few = [term for term in dict.fromkeys(folded_terms) if len(term) == FEW_LETTERS]
    short = [term for term in folded_terms if len(term) == IDEOGRAPHS and all(map(_is_unspaced, term))]
    return Tokens(_some(letters), few[:_MAX_FEW_LETTERS], _some(short))


def fold(text: str) -> str:
    """Folds the case of a text as `text_index.folded` does, a character at a time, so that places stay the same."""
    return "".join(map(_fold_character, text))


def occurrences(text: str, folded_terms: Iterable[str]) -> list[tuple[int, int]]:
    """Returns the places of the terms in a text as (start, end) in characters, adjacent ones joined."""
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


def _is_unspaced(character: str) -> bool:
    return any(first <= ord(character) <= last for first, last in UNSPACED)


def _some(found: list[str]) -> list[str]:
    """Returns at most _MAX_TOKENS of the tokens, evenly spread over the terms."""
    distinct = list(dict.fromkeys(found))
    if len(distinct) <= _MAX_TOKENS:
        return distinct
    return [distinct[index * len(distinct) // _MAX_TOKENS] for index in range(_MAX_TOKENS)]
