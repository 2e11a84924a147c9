"""Many patterns looked for at once: RE2 makes one automaton of them and reads the text once."""

from __future__ import annotations

from collections.abc import Sequence

import re2

# Gaps of several words make large automata. What an automaton holds at a time is bounded by this; RE2 starts anew, and
# never gives up, when a text leads to more states.
_MAX_BYTES = 16 << 20


def options() -> re2.Options:
    made = re2.Options()
    made.max_mem = _MAX_BYTES
    made.log_errors = False
    return made


class PatternSet:
    """Which of the patterns occur in a text. `group` patterns share an automaton: more are quicker once its states are
    known, fewer are quicker to know."""

    def __init__(self, patterns: Sequence[str], *, group: int = 12) -> None:
        self._groups: list[tuple[int, re2.Set]] = []
        for first in range(0, len(patterns), group):
            self._add(first, patterns[first : first + group])

    def _add(self, first: int, patterns: Sequence[str]) -> None:
        """As one automaton, or as two where one would be too large."""
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
        """Indices of the patterns that occur, ascending."""
        return [first + index for first, made in self._groups for index in sorted(made.Match(data) or ())]
