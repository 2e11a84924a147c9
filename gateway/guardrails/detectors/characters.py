"""Converts between offsets in a text and offsets in its UTF-8 bytes, which RE2 searches."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator

from gateway.guardrails.detectors.invisible import without_invisible

Span = tuple[int, int]


def encoded(text: str) -> bytes:
    """A lone surrogate, which JSON can spell and UTF-8 cannot, becomes a question mark."""
    return text.encode("utf-8", "replace")


def plain(text: str) -> str:
    """Replaces disguised letters (mathematical, full-width) by plain ones and removes invisible characters."""
    return without_invisible(text if text.isascii() else unicodedata.normalize("NFKC", text))


def character_spans(data: bytes, spans: Iterable[Span]) -> list[Span]:
    if data.isascii():
        return list(spans)
    found: list[Span] = []
    position = characters = 0
    for start, end in spans:
        characters += len(data[position:start].decode("utf-8", "replace"))
        length = len(data[start:end].decode("utf-8", "replace"))
        found.append((characters, characters + length))
        characters, position = characters + length, end
    return found


def apart(spans: list[Span]) -> Iterator[Span]:
    last = (-1, -1)
    for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        if start >= last[1]:
            yield start, end
            last = (start, end)
