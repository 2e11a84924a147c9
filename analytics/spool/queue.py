from __future__ import annotations

from collections import deque

from analytics.request_log.record import SpoolEntry

# The bytes of a record without its texts, estimated generously.
_RECORD_BYTES = 2048


class EntryQueue:
    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._entries: deque[SpoolEntry] = deque()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def has_room(self) -> bool:
        return self._bytes + _RECORD_BYTES <= self._max_bytes

    @property
    def first(self) -> SpoolEntry:
        return self._entries[0]

    def fits(self, entry: SpoolEntry) -> bool:
        return self._bytes + _size(entry) <= self._max_bytes

    def put(self, entry: SpoolEntry) -> None:
        self._entries.append(entry)
        self._bytes += _size(entry)

    def drop_first(self) -> None:
        self._bytes -= _size(self._entries.popleft())

    def clear(self) -> None:
        self._entries.clear()
        self._bytes = 0


def without_content(entry: SpoolEntry) -> SpoolEntry:
    return SpoolEntry(entry.record)


def _size(entry: SpoolEntry) -> int:
    return _RECORD_BYTES + len(entry.request) + len(entry.response)
