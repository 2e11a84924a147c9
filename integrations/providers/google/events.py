"""Cuts a stream into events in either of Google's forms: server-sent events or, without `alt=sse`, one growing JSON
array, cut anywhere."""

from __future__ import annotations

import re
from operator import attrgetter

from integrations.providers.common.sse import MAX_EVENT_BYTES, EventParser, EventTooLargeError, UnreadableStreamError

_BLANK = b" \t\r\n\xef\xbb\xbf"
# A failure in the middle of server-sent events comes as bare lines of JSON, as Google's own SDKs expect it.
_BARE_ERROR = re.compile(rb"""(?:^|[\r\n])(\{\s*"error"\s*:.*)""", re.DOTALL)
_TAIL_BYTES = 8192
_STRUCTURE = re.compile(rb'["\\{}]')
_QUOTE, _BACKSLASH, _OPEN, _CLOSE = b'"\\{}'
# Only white space, commas and brackets may stand between two objects.
_BETWEEN = b" \t\r\n,[]"
# A comprehension would enter a function of its own.
_DATA = attrgetter("data")


class Events:
    """The first byte that is not blank shows the stream's form. `feed` raises NotJsonError or EventTooLargeError."""

    __slots__ = ("_objects", "_sse", "_tail")

    def __init__(self) -> None:
        self._sse: EventParser | None = None
        self._objects: ObjectParser | None = None
        self._tail = b""  # `_tail` holds the last bytes of server-sent events.

    def feed(self, data: bytes) -> list[bytes]:
        if self._sse is not None:
            # Google ends lines with CRLF, and the parser is fastest with whole events that end in LF.
            if data[-2:] == b"\r\n":
                data = data.replace(b"\r\n", b"\n")
            self._tail = (self._tail + data)[-_TAIL_BYTES:]
            return list(map(_DATA, self._sse.feed(data)))
        if self._objects is not None:
            return self._objects.feed(data)
        begun = data.lstrip(_BLANK)
        if not begun:
            return []
        if begun[:1] in (b"[", b"{"):
            self._objects = ObjectParser()
        else:
            self._sse = EventParser()
        return self.feed(begun)

    def flush(self) -> list[bytes]:
        """The event that the stream's end cut off before its blank line, and a failure behind it."""
        if self._sse is None:
            return []
        bare = _BARE_ERROR.search(self._tail)
        return [*(event.data for event in self._sse.flush()), *([bare[1]] if bare else [])]

    def single(self, data: bytes, begin: bytes = b"", /) -> bytes:
        return b""


class NotJsonError(UnreadableStreamError):
    pass


class ObjectParser:
    """Parses one stream into JSON objects; the result does not depend on how the bytes are cut."""

    __slots__ = ("_depth", "_escaped", "_in_string", "_parts", "_size")

    def __init__(self) -> None:
        self._parts: list[bytes] = []  # `_parts` holds the pieces of the object that has begun.
        self._size = 0
        self._depth = 0
        self._in_string = False
        self._escaped = False  # `_escaped` is True when the last byte was a backslash in a string.

    def feed(self, data: bytes) -> list[bytes]:
        """Returns the objects that `data` completes. Raises NotJsonError or EventTooLargeError."""
        if not data:
            return []
        found: list[bytes] = []
        begin = 0  # `begin` is the beginning of the object, or of the bytes between two objects.
        passed = 0 if self._escaped else -1  # `passed` is the position of an escaped byte.
        for place in _STRUCTURE.finditer(data):
            position = place.start()
            if position == passed:
                continue
            if self._in_string:
                passed = self._within_string(data[position], position, passed)
            elif self._ends_or_begins(data[position]):
                begin = self._border(data, begin, position, found)
        self._escaped = passed == len(data)
        self._keep(data[begin:])
        return found

    def _within_string(self, byte: int, position: int, passed: int) -> int:
        if byte == _BACKSLASH:
            return position + 1
        if byte == _QUOTE:
            self._in_string = False
        return passed

    def _ends_or_begins(self, byte: int) -> bool:
        if byte == _OPEN:
            self._depth += 1
            return self._depth == 1
        if self._depth == 0:
            raise NotJsonError("not a list of JSON objects")
        if byte == _CLOSE:
            self._depth -= 1
            return self._depth == 0
        self._in_string = byte == _QUOTE
        return False

    def _border(self, data: bytes, begin: int, position: int, found: list[bytes]) -> int:
        if self._depth:
            _check_between(data[begin:position])
            return position
        found.append(b"".join([*self._parts, data[begin : position + 1]]))
        self._parts, self._size = [], 0
        return position + 1

    def _keep(self, rest: bytes) -> None:
        if not self._depth:
            _check_between(rest)
            return
        self._parts.append(rest)
        self._size += len(rest)
        if self._size > MAX_EVENT_BYTES:
            raise EventTooLargeError(f"an event has more than {MAX_EVENT_BYTES} bytes")


def _check_between(data: bytes) -> None:
    if data.strip(_BETWEEN):
        raise NotJsonError("not a list of JSON objects")
