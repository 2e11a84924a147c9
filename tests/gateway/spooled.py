"""Reads what the gateway's workers have appended to the spool, while they write."""

from __future__ import annotations

from pathlib import Path

from analytics.request_log.record import SpoolEntry
from analytics.spool import names
from analytics.spool.reader import read_stretch


class Spooled:
    """A reader of the spool that returns what was appended since its last look; it keeps records whose segments are
    shipped and deleted."""

    def __init__(self, spool: Path) -> None:
        self._spool = spool
        self._read_to: dict[Path, int] = {}
        self._entries: list[SpoolEntry] = []
        self._by_request: dict[str, list[SpoolEntry]] = {}

    def entries(self) -> list[SpoolEntry]:
        self._read_on()
        return self._entries

    def of_request(self, request_id: str) -> list[SpoolEntry]:
        self._read_on()
        return self._by_request.get(request_id, [])

    def _read_on(self) -> None:
        for path in names.list_files(self._spool, names.SEGMENT):
            try:
                stretch = read_stretch(path, self._read_to.get(path, 0), finished=False)
            except FileNotFoundError:
                continue  # The segment was shipped and deleted after it was listed.
            self._read_to[path] = stretch.end
            for frame in stretch.frames:
                entry = SpoolEntry(frame.record(), frame.request, frame.response)
                self._entries.append(entry)
                self._by_request.setdefault(entry.record.request_id, []).append(entry)


def spooled_entries(spool: Path) -> list[SpoolEntry]:
    return Spooled(spool).entries()
