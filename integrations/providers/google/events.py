"""Cuts a stream into its events, in either of Google's two forms: server-sent events or one JSON array."""

from __future__ import annotations

import re

from integrations.providers.common.sse import EventParser
from integrations.providers.google.json_values import ObjectParser

_BLANK = b" \t\r\n\xef\xbb\xbf"
# A failure in the middle of server-sent events comes as bare lines of JSON, as Google's own SDKs expect it.
_BARE_ERROR = re.compile(rb"""(?:^|[\r\n])(\{\s*"error"\s*:.*)""", re.DOTALL)
_TAIL_BYTES = 8192


class Events:
    """Cuts a stream into events. The first byte that is no blank shows the stream's form. `feed` raises NotJsonError,
    EventTooLargeError."""

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
            return [event.data for event in self._sse.feed(data)]
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
        """Returns the event that the end of the stream cut off before its blank line, if any, and a failure behind
        it."""
        if self._sse is None:
            return []
        bare = _BARE_ERROR.search(self._tail)
        return [*(event.data for event in self._sse.flush()), *([bare[1]] if bare else [])]
