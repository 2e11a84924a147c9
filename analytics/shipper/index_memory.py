"""Estimates the memory that the store's text indexes need for an insert, before its records become a batch.

An index keeps, while rows are inserted, a cell for each different token of their texts and a buffer for each token of
many rows: prose has few different tokens, whatever its size, whereas a list of hashes or random identifiers has one for
almost each of its bytes. A batch is fixed once it was tried, so one that needs too much could never be stored.
"""

from __future__ import annotations

from collections.abc import Sequence

from analytics.spool.reader import Frame

# What the store needs for each byte of a batch: up to twelve times its bytes, most of it for the text indexes.
USUAL_COST = 16
# What it needs for each byte of texts, by the share of different words in samples of them. Prose, markup and
# programs stay below the first share. Hashes in hexadecimal digits need fifty: they have tens of thousands of tokens,
# each in hundreds of rows. Where each byte may begin a token of its own, the cells take up to 160 bytes for it.
_COSTS = ((0.65, USUAL_COST), (0.98, 64))
_LARGEST_COST = 256
# Texts are judged in groups, so that a few odd ones are seen among many others.
_GROUP_BYTES = 2 << 20
# So many that prose repeats most of them: of two thousand, it repeats an eighth. They take a millisecond for each MB.
_SAMPLES = 16_384
_WORD_BYTES = 8
# Half a word is as long as the tokens of ASCII text. Beyond ASCII a character takes several bytes, and so a whole word.
_HALF = (1 << 32) - 1
_BEYOND_ASCII = 0x8080808080808080
# JSON may write such characters as escapes of six bytes.
_ESCAPE = rb"\u"
_MANY_ESCAPES = 1 / 24


def count_fitting(frames: Sequence[Frame], memory: int) -> int:
    """Returns how many of the first frames the store can take at once with this memory; at least one."""
    if sum(map(_size, frames)) * _LARGEST_COST <= memory:
        return len(frames)
    start = 0
    while start < len(frames):
        end, size = start, 0
        while end < len(frames) and size < _GROUP_BYTES:
            size += _size(frames[end])
            end += 1
        cost = _cost(frames[start:end])
        for place in range(start, end):
            memory -= _size(frames[place]) * USUAL_COST + _text_size(frames[place]) * (cost - USUAL_COST)
            if memory < 0:
                return max(place, 1)
        start = end
    return start


def _size(frame: Frame) -> int:
    return frame.end - frame.start


def _text_size(frame: Frame) -> int:
    return len(frame.request) + len(frame.response)


def _cost(group: Sequence[Frame]) -> int:
    """Returns the memory for each byte of the group's texts."""
    texts = b"".join([text for frame in group for text in (frame.request, frame.response)])
    words = memoryview(texts)[: len(texts) // _WORD_BYTES * _WORD_BYTES].cast("Q")
    if len(words) < _SAMPLES:
        return USUAL_COST
    # An odd step meets every part of lines of 32 or 64 bytes.
    taken = words[:: len(words) // _SAMPLES | 1].tobytes()
    sample = memoryview(taken).cast("Q").tolist()
    if taken.count(_ESCAPE) < len(taken) * _MANY_ESCAPES:
        sample = [word if word & _BEYOND_ASCII else word & _HALF for word in sample]
    share = len(set(sample)) / len(sample)
    return next((cost for most, cost in _COSTS if share < most), _LARGEST_COST)
