from __future__ import annotations

import re

_ESCAPES = {"d": "0", "w": "a", "s": " ", "n": "\n", "t": "\t", "r": "\r"}
_CANDIDATES = "a0A_-. @/:+#"


def matching_text(pattern: str) -> str | None:
    try:
        text = _Pattern(pattern).alternatives()
        return text if re.search(pattern, text) else None
    except (re.error, IndexError, ValueError):
        return None


class _Pattern:
    def __init__(self, source: str) -> None:
        self.source = source
        self.position = 0

    def alternatives(self) -> str:
        first = self._sequence()
        while self._peek() == "|":
            self.position += 1
            self._sequence()
        return first

    def _sequence(self) -> str:
        pieces = []
        while self._peek() not in ("", "|", ")"):
            piece = self._atom()
            pieces.append(piece * self._repeats())
        return "".join(pieces)

    def _atom(self) -> str:
        character = self._take()
        if character in "^$":
            return ""
        if character == ".":
            return "a"
        if character == "\\":
            return self._escape(self._take())
        if character == "[":
            return self._character_class()
        if character == "(":
            return self._group()
        return character

    def _escape(self, letter: str) -> str:
        return "" if letter in "bBAZ" else _ESCAPES.get(letter, letter)

    def _group(self) -> str:
        if self._peek() == "?":
            marker = self.source[self.position : self.position + 2]
            if marker == "?:":
                self.position += 2
            elif re.match(r"\?P<\w+>", self.source[self.position :]):
                self.position = self.source.index(">", self.position) + 1
            else:
                raise ValueError("look-around")
        text = self.alternatives()
        if self._take() != ")":
            raise ValueError("unbalanced group")
        return text

    def _character_class(self) -> str:
        start = self.position - 1
        if self._peek() == "^":
            self.position += 1
        self.position += 1  # A "]" at the beginning of a class is a member of it.
        while self._take() != "]":
            if self.source[self.position - 1] == "\\":
                self.position += 1
        expression = re.compile(self.source[start : self.position])
        members = self.source[start + 1 : self.position - 1]
        return next(character for character in _CANDIDATES + members if expression.fullmatch(character))

    def _repeats(self) -> int:
        character = self._peek()
        if character in ("*", "?"):
            count = 0
        elif character == "+":
            count = 1
        elif character == "{" and (bounds := re.match(r"\{(\d+)(,\d*)?\}", self.source[self.position :])):
            self.position += len(bounds.group()) - 1
            count = int(bounds.group(1))
        else:
            return 1
        self.position += 1
        if self._peek() == "?":
            self.position += 1
        return count

    def _peek(self) -> str:
        return self.source[self.position : self.position + 1]

    def _take(self) -> str:
        character = self.source[self.position]
        self.position += 1
        return character
