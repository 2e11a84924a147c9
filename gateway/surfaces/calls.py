"""Puts a model's tool calls one after the other, as other protocols' streams need them.

The chunks of a chat completion number their calls, and fragments of several calls may alternate; in the other
protocols, an item or a block ends before the next one begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

import msgspec

Piece = TypeVar("Piece")


class CallOrder(Generic[Piece]):
    """The order in which the fragments of a stream's calls are written.

    The next call begins when the previous one's arguments are complete JSON (`is_whole`, of the call that is being
    written); until then its fragments wait. The caller must write each fragment before it takes the next one.
    """

    __slots__ = ("_current", "_ended", "_is_whole", "_waiting")

    def __init__(self, is_whole: Callable[[], bool]) -> None:
        self._is_whole = is_whole
        self._current: int | None = None
        self._ended: set[int] = set()
        self._waiting: dict[int, list[Piece]] = {}

    def add(self, number: int, piece: Piece) -> Iterator[Piece]:
        if number == self._current:
            yield piece
        elif number not in self._ended:
            self._waiting.setdefault(number, []).append(piece)
        while self._waiting and (self._current is None or self._is_whole()):
            yield from self._next()

    def rest(self) -> Iterator[Piece]:
        while self._waiting:
            yield from self._next()

    def _next(self) -> list[Piece]:
        if self._current is not None:
            self._ended.add(self._current)
        self._current = next(iter(self._waiting))
        return self._waiting.pop(self._current)


def is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except msgspec.DecodeError:
        return False
    return True
