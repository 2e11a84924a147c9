"""How many records go into one insert, by the memory that the store's text indexes need for their texts."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import cache
from itertools import accumulate
from pathlib import Path

import pytest

from analytics.shipper.index_memory import USUAL_COST, count_fitting
from analytics.spool.reader import Frame
from benchmarks.record_entries import sentences, text

_TEXT_BYTES = 14_000
_MEMORY = 320_000_000
_DOCS = Path(__file__).resolve().parents[2] / "docs"


_SENTENCES = sentences()


def prose(chance: random.Random) -> str:
    return "".join(text(chance, _SENTENCES) for _ in range(4))


@cache
def _written() -> str:
    return "".join(path.read_text("utf-8") for path in sorted(_DOCS.glob("*.md")))


def pages(chance: random.Random) -> str:
    written = _written()
    start = chance.randrange(len(written) - _TEXT_BYTES)
    return written[start : start + _TEXT_BYTES]


def numbers(chance: random.Random) -> str:
    return " ".join(str(chance.getrandbits(32)) for _ in range(_TEXT_BYTES // 11))


def hashes(chance: random.Random) -> str:
    return " ".join(f"{chance.getrandbits(128):032x}" for _ in range(_TEXT_BYTES // 33))


def identifiers(chance: random.Random) -> str:
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
    return " ".join("".join(chance.choices(letters, k=22)) for _ in range(_TEXT_BYTES // 23))


def ideographs(chance: random.Random) -> str:
    return "".join(chr(chance.randrange(0x4E00, 0x9FFF)) for _ in range(_TEXT_BYTES // 3))


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


@pytest.mark.parametrize("write", [prose, pages, numbers])
def test_count__of_usual_texts__is_that_of_all_within_the_bytes_of_a_batch(
    write: Callable[[random.Random], str],
) -> None:
    frames = frames_of(write, _MEMORY // USUAL_COST - 2 * _TEXT_BYTES)

    assert count_fitting(frames, _MEMORY) == len(frames)


@pytest.mark.parametrize(
    ("write", "ascii_only", "share"),
    [(hashes, True, 64), (identifiers, True, 256), (ideographs, False, 256), (ideographs, True, 256)],
    ids=["hashes", "identifiers", "ideographs", "escaped"],
)
def test_count__of_texts_that_repeat_nothing__is_of_a_small_share_of_the_memory(
    write: Callable[[random.Random], str], ascii_only: bool, share: int
) -> None:
    frames = frames_of(write, 8_000_000, ascii_only=ascii_only)

    count = count_fitting(frames, _MEMORY)

    ends = [0, *accumulate(frame.end - frame.start for frame in frames)]
    assert _MEMORY / 257 < ends[count] <= _MEMORY / share * 1.1


def test_count__of_odd_texts_among_usual_ones__ends_where_the_odd_ones_fill_the_memory() -> None:
    usual, odd = frames_of(prose, 6_000_000), frames_of(identifiers, 6_000_000)

    count = count_fitting([*usual, *odd], _MEMORY)

    assert len(usual) < count < len(usual) + len(odd) // 2


def test_count__of_one_record_beyond_the_memory__is_one() -> None:
    frames = frames_of(identifiers, 3 * _TEXT_BYTES)

    assert count_fitting(frames, 1) == 1
    assert count_fitting([], 1) == 0
