"""Frames of the spool with texts of several kinds: some repeat their words as people do, and some repeat nothing."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path

from analytics.spool.reader import Frame
from benchmarks.record_entries import sentences, text

TEXT_BYTES = 14_000
_DOCS = Path(__file__).resolve().parents[2] / "docs"


_SENTENCES = sentences()


def prose(chance: random.Random) -> str:
    return "".join(text(chance, _SENTENCES) for _ in range(4))


@cache
def _written() -> str:
    return "".join(path.read_text("utf-8") for path in sorted(_DOCS.glob("*.md")))


def pages(chance: random.Random) -> str:
    written = _written()
    start = chance.randrange(len(written) - TEXT_BYTES)
    return written[start : start + TEXT_BYTES]


def hashes(chance: random.Random) -> str:
    return " ".join(f"{chance.getrandbits(128):032x}" for _ in range(TEXT_BYTES // 33))


def identifiers(chance: random.Random) -> str:
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
    return " ".join("".join(chance.choices(letters, k=22)) for _ in range(TEXT_BYTES // 23))


def letters(chance: random.Random) -> str:
    """Returns one letter again and again: no text has more words, or fewer different ones."""
    return f"{chance.choice('abcdefgh')} " * (TEXT_BYTES // 2)


def ideographs(chance: random.Random) -> str:
    return "".join(chr(chance.randrange(0x4E00, 0x9FFF)) for _ in range(TEXT_BYTES // 3))


def frames_of(write: Callable[[random.Random], str], size: int, *, ascii_only: bool = False) -> list[Frame]:
    """Returns frames of `size` bytes together."""
    chance, frames, end = random.Random(7), [], 0
    while end < size:
        body = _body(write(chance), ascii_only)
        frames.append(Frame(end, end + len(body) + 300, b"{}", body, b""))
        end = frames[-1].end
    return frames


def _body(content: str, ascii_only: bool) -> bytes:
    message = {"messages": [{"role": "user", "content": content}]}
    return json.dumps(message, ensure_ascii=ascii_only).encode()
