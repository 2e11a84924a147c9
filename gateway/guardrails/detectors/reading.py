"""A text as it may be read, each of whose characters knows where it stands in the original."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable
from typing import NamedTuple


class Reading(NamedTuple):
    """One reading of a text. `starts` and `ends` hold the span in the original text that each of its characters was
    read from; the spans of a reading from right to left descend."""

    text: str
    starts: array[int]
    ends: array[int]

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Returns the span in the original text that encloses all characters of a part of the reading."""
        return min(self.starts[start:end]), max(self.ends[start:end])

    def substituted(self, pattern: re.Pattern[str], instead: Callable[[re.Match[str]], str]) -> Reading:
        """Returns the reading with `instead` for every match; each character of a replacement stands where the whole
        match does."""
        pieces: list[str] = []
        starts, ends = array("I"), array("I")
        at = 0
        for match in pattern.finditer(self.text):
            first, last = match.span()
            pieces.append(self.text[at:first])
            starts += self.starts[at:first]
            ends += self.ends[at:first]
            made = instead(match)
            if made:
                pieces.append(made)
                starts.extend([self.starts[first]] * len(made))
                ends.extend([self.ends[last - 1]] * len(made))
            at = last
        return Reading("".join([*pieces, self.text[at:]]), starts + self.starts[at:], ends + self.ends[at:])


def as_written(text: str) -> Reading:
    """Returns the reading that is the text itself."""
    return Reading(text, array("I", range(len(text))), array("I", range(1, len(text) + 1)))
