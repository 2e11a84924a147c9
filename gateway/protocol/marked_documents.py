"""How applications mark documents that they paste into messages.

They use the field `trust` of a text part, or words that the project's settings name
(docs/guardrails.md#documents-in-messages).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

MARK = "trust"
UNTRUSTED = "untrusted"

Delimiters = tuple[tuple[str, str], ...]


class Piece(NamedTuple):
    text: str
    is_document: bool


def is_marked(part: Mapping[str, Any]) -> bool:
    return part.get(MARK) == UNTRUSTED


def pieces_of(text: str, delimiters: Delimiters) -> list[Piece]:
    """Returns the text in pieces, in order.

    A document reaches from its first beginning to the last end, since it may contain an end itself. Without an end it
    reaches to the end of the text.
    """
    pieces: list[Piece] = []
    at = 0
    for start, end in _united(_spans(text, delimiters)):
        pieces += [Piece(text[at:start], False), Piece(text[start:end], True)]
        at = end
    return [piece for piece in (*pieces, Piece(text[at:], False)) if piece.text]


def without_marks(value: Any) -> Any:
    if isinstance(value, list):
        return [without_marks(item) for item in value]
    if not isinstance(value, dict):
        return value
    marked = is_marked(value)
    return {
        name: without_marks(item) if name == "content" else item
        for name, item in value.items()
        if not (marked and name == MARK)
    }


def _spans(text: str, delimiters: Delimiters) -> Iterator[tuple[int, int]]:
    for begin, end in delimiters:
        start = text.find(begin)
        if start >= 0:
            last = text.rfind(end, start + len(begin))
            yield start, last + len(end) if last >= 0 else len(text)


def _united(spans: Iterable[tuple[int, int]]) -> Sequence[tuple[int, int]]:
    united: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if united and start < united[-1][1]:
            united[-1] = united[-1][0], max(united[-1][1], end)
        else:
            united.append((start, end))
    return united
