from __future__ import annotations

import re
from itertools import groupby

from gateway.guardrails.output.masks import Mask, Masks
from gateway.guardrails.output.window import Notes, TextWindow, borders

_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
# The tokens within a JSON string: plain characters, a surrogate pair in two escapes, an escape, and an unfinished
# escape at the end of the text.
_IN_STRING = re.compile(
    r"(?P<plain>[^\"\\]+)|(?P<pair>\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|(?P<half>\\u[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u[0-9a-fA-F]{0,3})?)?\Z)|(?P<code>\\u[0-9a-fA-F]{4})"
    r"|(?P<open>\\(?:u[0-9a-fA-F]{0,3})?\Z)|(?P<escape>\\.)|(?P<end>\")",
    re.DOTALL,
)
_OUTSIDE = re.compile(r"(?P<plain>[^\"{}\[\]0-9.eE+\-]+)|(?P<number>[0-9.eE+\-]+)|(?P<sign>[\"{}\[\]])")
_BORDER = borders(r"\s,")

_PUNCTUATION = 0


class JsonWindow(TextWindow):
    """A window over JSON. A complete value is released at once; text that is not JSON passes as well as it can.

    A comma is a border like a blank: findings that continue after either have digits before it.
    """

    border = _BORDER

    def __init__(self, masks: Masks, topics: tuple[str, ...], notes: Notes) -> None:
        super().__init__(masks, topics, notes)
        self._pieces: list[str] = []  # `_pieces` holds the notation of each character of `_text`.
        # `_tokens` holds the token of each character: a string (even), a number (odd), or _PUNCTUATION.
        self._tokens: list[int] = []
        self._unread = ""
        self._in_string = False
        self._depth = 0
        self._token = 2

    def feed(self, text: str) -> str:
        read, complete = self._read(self._unread + text)
        given = super().feed(read)
        return given + super().finish() if complete else given

    def finish(self) -> str:
        given = super().finish()
        rest, self._unread = self._unread, ""
        return given + rest

    def _read(self, source: str) -> tuple[str, bool]:
        read: list[str] = []
        at, self._unread, closed = 0, "", False
        while at < len(source):
            found = (_IN_STRING if self._in_string else _OUTSIDE).match(source, at)
            if found is None or found.lastgroup in ("half", "open"):
                self._unread = source[at:]
                break
            at = found.end()
            if self._in_string:
                self._read_in_string(found, read)
            else:
                self._read_outside(found, read)
            closed = self._depth == 0 and found[0] in ("}", "]") and not self._in_string
        return "".join(read), closed and not self._unread

    def _read_in_string(self, found: re.Match[str], read: list[str]) -> None:
        text, kind = found[0], found.lastgroup
        if kind == "plain":
            self._add(text, list(text), self._token, read)
        elif kind == "end":
            self._in_string = False
            self._add(text, [text], _PUNCTUATION, read)
        else:
            self._add(_unescaped(text), [text], self._token, read)

    def _read_outside(self, found: re.Match[str], read: list[str]) -> None:
        text, kind = found[0], found.lastgroup
        if kind == "number":
            # Consecutive digits are one number, whether they come in pieces or not.
            is_on = bool(self._tokens) and self._tokens[-1] % 2 == 1
            self._token += 0 if is_on else 2
            self._add(text, list(text), self._tokens[-1] if is_on else self._token + 1, read)
            return
        self._add(text, list(text), _PUNCTUATION, read)
        if text == '"':
            self._in_string = True
            self._token += 2
        elif text in ("{", "["):
            self._depth += 1
        elif text in ("}", "]"):
            self._depth = max(0, self._depth - 1)

    def _add(self, text: str, pieces: list[str], token: int, read: list[str]) -> None:
        read.append(text)
        self._pieces += pieces
        self._tokens += [token] * len(pieces)

    def _between(self, start: int, end: int) -> str:
        return "".join(self._pieces[start:end])

    def _whole(self, start: int, end: int) -> tuple[int, int]:
        tokens = self._tokens
        while start > 0 and tokens[start] % 2 and tokens[start - 1] == tokens[start]:
            start -= 1
        while end < len(tokens) and tokens[end - 1] % 2 and tokens[end] == tokens[end - 1]:
            end += 1
        return start, end

    def _instead(self, start: int, end: int, mask: Mask) -> str:
        out: list[str] = []
        for token, places in groupby(range(start, end), key=self._tokens.__getitem__):
            if token == _PUNCTUATION:
                out += [self._pieces[place] for place in places]
            else:
                out.append(f'"{mask.text}"' if token % 2 else mask.text)
        return "".join(out)

    def _forget(self, count: int) -> None:
        super()._forget(count)
        del self._pieces[:count], self._tokens[:count]


def _unescaped(escape: str) -> str:
    if escape[1] != "u":
        return _ESCAPES.get(escape[1], escape[1])
    if len(escape) == 12:
        return chr(0x10000 + ((int(escape[2:6], 16) & 0x3FF) << 10) + (int(escape[8:12], 16) & 0x3FF))
    code = int(escape[2:], 16)
    return "\ufffd" if 0xD800 <= code <= 0xDFFF else chr(code)
