"""Cuts a stream of JSON objects, bare or in one array, out of bytes that were cut anywhere. streamGenerateContent
answers in this form, a growing array, without `alt=sse`."""

from __future__ import annotations

import re

from integrations.providers.common.sse import MAX_EVENT_BYTES, EventTooLargeError, UnreadableStreamError

_STRUCTURE = re.compile(rb'["\\{}]')
_QUOTE, _BACKSLASH, _OPEN, _CLOSE = b'"\\{}'
# Only white space, commas and brackets may stand between two objects.
_BETWEEN = b" \t\r\n,[]"


class NotJsonError(UnreadableStreamError):
    """The bytes are not JSON objects."""


class ObjectParser:
    """Takes bytes and returns the objects that they complete. There is one instance per stream; the result does not
    depend on how the bytes are cut."""

    __slots__ = ("_depth", "_escaped", "_in_string", "_parts", "_size")

    def __init__(self) -> None:
        self._parts: list[bytes] = []  # `_parts` holds the pieces of the object that has begun.
        self._size = 0
        self._depth = 0
        self._in_string = False
        self._escaped = False  # `_escaped` is True when the last byte was a backslash in a string.

    def feed(self, data: bytes) -> list[bytes]:
        """Returns the objects that `data` completes. Raises NotJsonError, EventTooLargeError."""
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
        """Returns the position of the byte that a backslash escapes."""
        if byte == _BACKSLASH:
            return position + 1
        if byte == _QUOTE:
            self._in_string = False
        return passed

    def _ends_or_begins(self, byte: int) -> bool:
        """Returns True when an outermost object begins or ends with this byte."""
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
        """Returns the position at which the next object, or the text between two objects, begins."""
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
            raise EventTooLargeError(f"an event of more than {MAX_EVENT_BYTES} bytes")


def _check_between(data: bytes) -> None:
    if data.strip(_BETWEEN):
        raise NotJsonError("not a list of JSON objects")
