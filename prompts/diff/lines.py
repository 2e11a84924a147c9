from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

# Above this many pairs of words a line counts as replaced: comparing takes time in proportion to the pairs.
MAX_WORD_PAIRS = 250_000
# Lines that have less in common read better as a whole: marks on nearly every word show nothing.
_MIN_SIMILARITY = 0.2

_WORDS = re.compile(r"\w+|\s+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class PromptLinePart:
    text: str
    changed: bool


Parts = tuple[PromptLinePart, ...]


def compare_lines(before: str, after: str) -> tuple[Parts, Parts]:
    """The concatenated texts of a line's parts are the line."""
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    if len(old) * len(new) > MAX_WORD_PAIRS:
        return _whole(before), _whole(after)
    opcodes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    equal = sum(len("".join(old[i1:i2]).strip()) for tag, i1, i2, _, _ in opcodes if tag == "equal")
    if equal < _MIN_SIMILARITY * max(len(before), len(after)):
        return _whole(before), _whole(after)
    left = tuple(_parts([(tag, old[i1:i2]) for tag, i1, i2, _, _ in opcodes]))
    return left, tuple(_parts([(tag, new[j1:j2]) for tag, _, _, j1, j2 in opcodes]))


def _whole(line: str) -> Parts:
    return (PromptLinePart(line, True),) if line else ()


def _parts(pieces: Sequence[tuple[str, Sequence[str]]]) -> Iterator[PromptLinePart]:
    for tag, words in pieces:
        if words:
            yield PromptLinePart("".join(words), tag != "equal")
