"""Recognises turns that an earlier request of the same session carried, by chains of hashes.

A client sends the whole conversation with every call. Each turn's hash includes those before it, so a turn counts as
known only after the same beginning: an "ok" said twice is two turns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b

from analytics.conversation.bodies import NOT_JSON, decode_body
from analytics.conversation.turns import Part, PartKind, Turn

_BYTES = 16
# Clients leave these out when they send an answer back.
_NOT_SENT_BACK = frozenset({PartKind.THINKING, PartKind.FIELD})


def chain(turns: Sequence[Turn], start: bytes = b"") -> Iterator[bytes]:
    """Yields for each turn the hash of it and all before it. `start` is the hash of what came before the first turn."""
    link = start
    for turn in turns:
        link = blake2b(link + _digest(turn), digest_size=_BYTES).digest()
        yield link


class SeenTurns:
    def __init__(self) -> None:
        self._links: set[bytes] = set()

    def add(self, turns: Sequence[Turn], answer: Sequence[Turn]) -> int:
        """Returns how many of the first turns are known, then adds all turns and the answer."""
        links = list(chain(turns))
        known = next((place for place, link in enumerate(links) if link not in self._links), len(links))
        self._links.update(links)
        for choice in answer:
            self._links.update(chain([choice], links[-1] if links else b""))
        return known


def _digest(turn: Turn) -> bytes:
    hashed = blake2b(turn.role.encode(), digest_size=_BYTES)
    for part in turn.parts:
        if part.kind not in _NOT_SENT_BACK:
            hashed.update(f"\0{part.kind}\0{part.name}\0".encode())
            hashed.update(_content(part).encode())
    return hashed.digest()


def _content(part: Part) -> str:
    if part.kind is PartKind.TOOL_CALL:
        # Protocols carry arguments as an object or as a text, with other blanks.
        arguments = decode_body(part.text)
        return part.text if arguments is NOT_JSON else repr(arguments)
    return part.text.strip() or part.data or part.url
