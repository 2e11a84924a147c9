from __future__ import annotations

import re
from array import array
from collections.abc import Callable
from typing import NamedTuple


class Reading(NamedTuple):
    """`starts` and `ends` hold each character's span in the original; in a reading from right to left they descend."""

    text: str
    starts: array[int]
    ends: array[int]

    def place(self, start: int, end: int) -> tuple[int, int]:
        return min(self.starts[start:end]), max(self.ends[start:end])

    def substituted(self, pattern: re.Pattern[str], instead: Callable[[re.Match[str]], str]) -> Reading:
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
    return Reading(text, array("I", range(len(text))), array("I", range(1, len(text) + 1)))
