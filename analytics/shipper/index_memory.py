"""Estimates the memory that the store's text indexes need for an insert, before its records become a batch.

On insert, the store splits all texts into words at once; an index keeps a cell for each different word and a buffer for
each word of many rows. Prose has few different words at any size, a list of hashes or random identifiers has only
different ones, and in ideographs every two characters are a word. A batch is fixed at its first try, so one that needs
too much memory could never be stored.
"""

from __future__ import annotations

from collections.abc import Sequence

from analytics.spool.reader import Frame

# What the store needs for each byte of a record beside its texts: up to nine times its bytes, and some for all.
USUAL_COST = 16
# What it needs for each byte of texts: 21 for prose, up to 40 where words are single letters or digits.
TEXT_COST, _SHORT_WORDS_COST = 32, 48
# More than this share of other characters than letters and digits is between short words; prose has a fifth.
_SHORT_WORDS = 0.3
_SIGNS = bytes(code for code in range(128) if not chr(code).isalnum())
# What it needs by the share of different words in samples of texts. Prose, markup and programs stay below the first
# share. Hashes in hexadecimal digits need 28, random identifiers 58, and ideographs 106.
_REPEATING, _UNREPEATED = 0.65, 0.98
_HASHES_COST, LARGEST_COST = 64, 160
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
    """Returns how many of the first frames the store can take at once with this memory (bytes); at least one."""
    start, rest = 0, sum(map(_size, frames))
    # What fits at any price is not judged: the whole of a small batch, the end of a large one.
    while rest * LARGEST_COST > memory:
        end, size = start, 0
        while end < len(frames) and size < _GROUP_BYTES:
            size += _size(frames[end])
            end += 1
        cost, rest = _cost(frames[start:end]), rest - size
        for place in range(start, end):
            memory -= _size(frames[place]) * USUAL_COST + _text_size(frames[place]) * (cost - USUAL_COST)
            if memory < 0:
                return max(place, 1)
        start = end
    return len(frames)


def _size(frame: Frame) -> int:
    return frame.end - frame.start


def _text_size(frame: Frame) -> int:
    return len(frame.request) + len(frame.response)


def _cost(group: Sequence[Frame]) -> int:
    texts = b"".join([text for frame in group for text in (frame.request, frame.response)])
    words = memoryview(texts)[: len(texts) // _WORD_BYTES * _WORD_BYTES].cast("Q")
    if len(words) < _SAMPLES:
        return TEXT_COST
    # An odd step meets every part of lines of 32 or 64 bytes.
    taken = words[:: len(words) // _SAMPLES | 1].tobytes()
    if taken.count(_ESCAPE) >= len(taken) * _MANY_ESCAPES:
        sample = memoryview(taken).cast("Q").tolist()
    elif taken.isascii():
        sample = memoryview(taken).cast("I")[::2].tolist()
    else:
        words = memoryview(taken).cast("Q")
        sample = [word if word & _BEYOND_ASCII else word & _HALF for word in words.tolist()]
    share = len(set(sample)) / len(sample)
    if share < _REPEATING:
        signs = len(taken) - len(taken.translate(None, _SIGNS))
        return TEXT_COST if signs < len(taken) * _SHORT_WORDS else _SHORT_WORDS_COST
    return _HASHES_COST if share < _UNREPEATED else LARGEST_COST
