"""How many records go into one insert, by the memory that the store's text indexes need for their texts."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import accumulate

import pytest

from analytics.shipper.index_memory import TEXT_COST, count_fitting
from analytics.spool.reader import Frame
from tests.analytics.texts import TEXT_BYTES, frames_of, hashes, identifiers, ideographs, letters, pages, prose

_MEMORY = 320_000_000


@pytest.mark.parametrize("write", [prose, pages])
def test_count__of_usual_texts__is_that_of_all_within_the_bytes_of_a_batch(
    write: Callable[[random.Random], str],
) -> None:
    frames = frames_of(write, _MEMORY // TEXT_COST - 2 * TEXT_BYTES)

    assert count_fitting(frames, _MEMORY) == len(frames)


@pytest.mark.parametrize(
    ("write", "ascii_only", "share"),
    [(hashes, True, 64), (identifiers, True, 160), (ideographs, False, 160), (ideographs, True, 160)],
    ids=["hashes", "identifiers", "ideographs", "escaped"],
)
def test_count__of_texts_that_repeat_nothing__is_of_a_small_share_of_the_memory(
    write: Callable[[random.Random], str], ascii_only: bool, share: int
) -> None:
    frames = frames_of(write, 8_000_000, ascii_only=ascii_only)

    count = count_fitting(frames, _MEMORY)

    ends = [0, *accumulate(frame.end - frame.start for frame in frames)]
    assert _MEMORY / 300 < ends[count] <= _MEMORY / share * 1.1


def test_count__of_single_letters__is_smaller_than_that_of_prose() -> None:
    """Each word has a price, however often it is there."""
    size = _MEMORY // TEXT_COST - 2 * TEXT_BYTES
    frames = frames_of(letters, size)

    count = count_fitting(frames, _MEMORY)

    assert len(frames) * 0.6 < count < len(frames) * 0.8


def test_count__of_lines_of_one_length_that_begin_alike__sees_their_ends() -> None:
    chance = random.Random(7)
    lines = b"".join(b"constant" + chance.randbytes(11).hex().encode() + b"\n." for _ in range(65_536))
    frames = [Frame(end - len(lines), end, b"", lines, b"") for end in range(len(lines), 9 * len(lines), len(lines))]

    assert count_fitting(frames, _MEMORY) < 3


def test_count__of_odd_texts_among_usual_ones__ends_where_the_odd_ones_fill_the_memory() -> None:
    usual, odd = frames_of(prose, 6_000_000), frames_of(identifiers, 6_000_000)

    count = count_fitting([*usual, *odd], _MEMORY)

    assert len(usual) < count < len(usual) + len(odd) // 2


def test_count__of_one_record_beyond_the_memory__is_one() -> None:
    frames = frames_of(identifiers, 3 * TEXT_BYTES)

    assert count_fitting(frames, 1) == 1
    assert count_fitting([], 1) == 0
