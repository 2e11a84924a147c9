"""Searches a text for many patterns at once: RE2 makes one automaton of them and reads the text once."""

from __future__ import annotations

import time
from collections.abc import Sequence

import re2

# Patterns that allow several words in between make large automata. This bounds the memory for an automaton's states;
# RE2 drops them and goes on, never fails, when a text leads to more.
_MAX_BYTES = 16 << 20


def options() -> re2.Options:
    made = re2.Options()
    made.max_mem = _MAX_BYTES
    made.log_errors = False
    return made


class PatternSet:
    """`group` patterns share an automaton. Larger groups search faster once computed; smaller ones compute faster."""

    def __init__(self, patterns: Sequence[str], *, group: int = 12) -> None:
        self._groups: list[tuple[int, re2.Set]] = []
        for first in range(0, len(patterns), group):
            self._add(first, patterns[first : first + group])
            # RE2 holds the interpreter lock while it compiles: between two groups, other threads may run.
            time.sleep(0)

    def _add(self, first: int, patterns: Sequence[str]) -> None:
        made = re2.Set.SearchSet(options())
        for pattern in patterns:
            made.Add(pattern)
        try:
            made.Compile()
        except re2.error:
            half = len(patterns) // 2
            if not half:
                raise
            self._add(first, patterns[:half])
            self._add(first + half, patterns[half:])
        else:
            self._groups.append((first, made))

    def matching(self, data: bytes) -> list[int]:
        return [first + index for first, made in self._groups for index in sorted(made.Match(data) or ())]
