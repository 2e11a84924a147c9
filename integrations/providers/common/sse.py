"""Server-sent events out of bytes that were cut anywhere. Pure; the HTML standard's parsing rules.

Lines end in LF, CRLF or CR; a colon first is a comment; the blank after `data:` is optional; several data lines of one
event are joined by LF. Only `data` and `event` matter here.
"""

from __future__ import annotations

from typing import NamedTuple

# A whole answer may come as one event, but an upstream that never ends a line must not fill the memory.
MAX_EVENT_BYTES = 32 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"
# Bytes are looked for by number: asked for other bytes, `in` first makes and drops an error that they are no number.
_LF, _CR = b"\n\r"


class ServerSentEvent(NamedTuple):
    data: bytes
    event: str = ""


class UnreadableStreamError(ValueError):
    """The bytes of a stream cannot be cut into events. Its text may be shown to the client once it is redacted."""


class EventTooLargeError(UnreadableStreamError):
    """An event grew past MAX_EVENT_BYTES without an end."""


class EventParser:
    """Feed bytes, get the events they complete. One instance per stream; the result does not depend on the cuts."""

    __slots__ = ("_held_cr", "_parts", "_size", "_started")

    def __init__(self) -> None:
        self._parts: list[bytes] = []  # what came since the last event ended
        self._size = 0
        self._held_cr = False  # a CR at the end of a piece may be half of a CRLF
        self._started = False

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        """Raises EventTooLargeError."""
        # What every provider sends almost always: whole events, LF only, nothing left over.
        if self._started and not self._parts and not self._held_cr and data[-2:] == b"\n\n" and _CR not in data:
            return _events(data[:-2])
        return self._feed_slowly(data)

    def flush(self) -> list[ServerSentEvent]:
        """The event that the end of the stream cut off before its blank line, if any (some providers omit the last)."""
        if self._held_cr:
            self._held_cr = False
            self._parts.append(b"\n")
        rest, self._parts = b"".join(self._parts), []
        return _events(rest)

    def _feed_slowly(self, data: bytes) -> list[ServerSentEvent]:
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
        return _events(complete) if separator else []

    def _check_size(self) -> None:
        # A piece may hold many whole events: only what is left of an unfinished one counts.
        unfinished = len(b"".join(self._parts).rpartition(b"\n\n")[2])
        if unfinished > MAX_EVENT_BYTES:
            raise EventTooLargeError(f"an event of more than {MAX_EVENT_BYTES} bytes")

    def _normalised(self, data: bytes) -> bytes:
        """Line ends as LF. A CR at the very end waits for the next piece."""
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
        elif (event := _event(block)) is not None:
            events.append(event)
    return events


def _event(block: bytes) -> ServerSentEvent | None:
    """One event from its lines, None when it has no data (comments, keep-alives)."""
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
