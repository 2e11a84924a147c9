"""What the gateway's workers have appended to the spool, read while they write."""

from __future__ import annotations

from pathlib import Path

from analytics.contracts import SpoolEntry
from analytics.spool import names
from analytics.spool.reader import read_stretch


def spooled_entries(spool: Path) -> list[SpoolEntry]:
    return [
        SpoolEntry(frame.record(), frame.request, frame.response)
        for path in names.list_files(spool, names.SEGMENT)
        for frame in read_stretch(path, 0, finished=False).frames
    ]
