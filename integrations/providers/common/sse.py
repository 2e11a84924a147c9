"""Parses server-sent events by the HTML standard's rules, without I/O, however the bytes are cut.

Lines end in LF, CRLF or CR; a line that begins with a colon is a comment; the blank after `data:` is optional; an
event's data lines are joined by LF. Only the fields `data` and `event` are used.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

# A whole answer may come as one event, but an upstream that never ends a line must not fill the memory.
MAX_EVENT_BYTES = 32 * 1024 * 1024
# The names of a stream's events are few and short; a longer one is not remembered.
_MAX_NAME = 100
_BOM = b"\xef\xbb\xbf"
# The bytes are compared as numbers, since `in` with a bytes argument first raises and drops an internal error.
_LF, _CR = b"\n\r"


# The class is a msgspec struct because one is made for each event of a stream.
class ServerSentEvent(msgspec.Struct, frozen=True, gc=False):
    data: bytes
    event: str = ""


class UnreadableStreamError(ValueError):
    """The bytes of a stream cannot be cut into events. Clients may see its text once it is redacted."""


class EventTooLargeError(UnreadableStreamError):
    pass


class EventParser:
    """Parses one stream; the result does not depend on how the bytes are cut."""

    __slots__ = ("_held_cr", "_parts", "_size", "_started", "at_border")

    def __init__(self) -> None:
        # `at_border` is True when the next byte begins an event, after the first one of the stream.
        self.at_border = False
        self._parts: list[bytes] = []  # `_parts` holds the bytes since the last event ended.
        self._size = 0
        self._held_cr = False  # A CR at the end of a piece may be half of a CRLF, so it waits for the next piece.
        self._started = False

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        """Returns the events that `data` completes. Raises EventTooLargeError."""
        # Almost every provider sends whole events with LF line ends and nothing left over, and this branch serves them.
        if self.at_border and data[-2:] == b"\n\n" and _CR not in data:
            if data[:6] == b"data: " and data.find(_LF) == len(data) - 2:
                # One event of one line, as most chunks of a stream are.
                return [ServerSentEvent(data[6:-2])]
            return _events(data[:-2])
        return self._feed_slowly(data)

    def single(self, data: bytes, begin: bytes = b"data: ") -> bytes:
        """The payload of `data` if that is one whole event with a single data line after `begin`; else no bytes.

        Consumes nothing: pass the bytes to `feed` too.
        """
        end = len(data) - 2
        if self.at_border and data.startswith(begin) and data.find(b"\n", len(begin)) == end and data[end:] == b"\n\n":
            return b"" if _CR in data else data[len(begin) : end]
        return b""

    def flush(self) -> list[ServerSentEvent]:
        """The event that the stream's end cut off before its blank line; some providers omit that line."""
        if self._held_cr:
            self._held_cr = False
            self._parts.append(b"\n")
        self.at_border = False
        rest, self._parts = b"".join(self._parts), []
        return _events(rest)

    def _feed_slowly(self, data: bytes) -> list[ServerSentEvent]:
        self.at_border = False
        data = self._normalised(data)
        self._parts.append(data)
        self._size += len(data)
        if self._size > MAX_EVENT_BYTES:
            self._check_size()
        if _LF not in data:
            return []
        joined = b"".join(self._parts)
        if not self._started:
            self._started = True
            joined = joined.removeprefix(_BOM)
        complete, separator, rest = joined.rpartition(b"\n\n")
        self._parts = [rest] if rest else []
        self._size = len(rest)
        self.at_border = not rest and not self._held_cr
        return _events(complete) if separator else []

    def _check_size(self) -> None:
        # A piece may hold many whole events, so only the rest of an unfinished one counts against the limit.
        unfinished = len(b"".join(self._parts).rpartition(b"\n\n")[2])
        if unfinished > MAX_EVENT_BYTES:
            raise EventTooLargeError(f"an event has more than {MAX_EVENT_BYTES} bytes")

    def _normalised(self, data: bytes) -> bytes:
        """Makes all line ends LF. A CR at the very end waits for the next bytes."""
        if self._held_cr:
            data = b"\r" + data
            self._held_cr = False
        if _CR not in data:
            return data
        if data.endswith(b"\r"):
            self._held_cr = True
            data = data[:-1]
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _events(blocks: bytes) -> list[ServerSentEvent]:
    events = []
    for block in blocks.split(b"\n\n"):
        if block.startswith(b"data: ") and _LF not in block:
            events.append(ServerSentEvent(block[6:]))
        elif (event := _named_event(block) or _event(block)) is not None:
            events.append(event)
    return events


def _named_event(block: bytes) -> ServerSentEvent | None:
    name, _, data = block.partition(b"\n")
    if not name.startswith(b"event: ") or len(name) > _MAX_NAME or not data.startswith(b"data: ") or _LF in data:
        return None
    return ServerSentEvent(data[6:], _name(name[7:]))


@lru_cache(maxsize=1024)
def _name(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def _event(block: bytes) -> ServerSentEvent | None:
    data: list[bytes] = []
    name = ""
    for line in block.split(b"\n"):
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            data.append(value)
        elif field == b"event":
            name = value.decode("utf-8", "replace")
    if not data:
        return None
    return ServerSentEvent(b"\n".join(data), name)
