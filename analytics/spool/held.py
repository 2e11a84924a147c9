"""Records that join the spool all together or not at all: those of a batch's results, of which there may be 50,000.

They are appended to a segment in a folder that no shipper reads. Their owner then decides elsewhere, in a database, and
`publish` moves the segment into the spool. A process that dies in between leaves the segment: `settle_held` moves what
was decided for, and deletes the rest.
"""

from __future__ import annotations

import logging
import os
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from analytics.request_log.record import SpoolEntry
from analytics.spool import frames, names
from analytics.spool.reader import is_finished
from analytics.spool.segment import Segment

logger = logging.getLogger("analytics.spool")

_FOLDER = "held"


class HeldRecords:
    """A segment that its owner fills, and then publishes or discards. One thread at a time may use it."""

    def __init__(self, spool: Path) -> None:
        """Makes the segment. Raises OSError."""
        folder = spool / _FOLDER
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._spool = spool
        # Segments of a worker tell which of its requests were recorded. These records are of none of its requests, so
        # that the name has a token of its own.
        name = f"{time.time_ns() // 1000}-{os.getpid()}-{secrets.token_hex(4)}{names.SEGMENT}"
        self._segment = Segment.create(folder / name)

    @property
    def name(self) -> str:
        """The name by which `settle_held` asks whether the records were decided for."""
        return self._segment.path.name

    def append(self, entry: SpoolEntry) -> None:
        """Writes one record. Raises OSError, as on a full disk."""
        meta = frames.encode_meta(entry.record)
        self._segment.append(frames.pack(meta, entry.request, entry.response, self._segment.seed))

    def publish(self) -> None:
        """Moves the records into the spool. Raises OSError, and then leaves them to `settle_held`."""
        try:
            # The segment is closed, and with that unlocked, behind its move: a shipper takes it only when it is whole.
            self._segment.path.rename(self._spool / self.name)
        finally:
            self._segment.close()

    def discard(self) -> None:
        """Deletes the records."""
        self._segment.path.unlink(missing_ok=True)
        with suppress(OSError):
            self._segment.close()


def settle_held(spool: Path, is_decided: Callable[[str], bool]) -> int:
    """Publishes the segments of dead owners for which `is_decided`, deletes their others, and returns the number
    published. Repeatable, also at once in several processes. Raises what `is_decided` raises."""
    published = 0
    for segment in names.list_files(spool / _FOLDER, names.SEGMENT):
        with suppress(FileNotFoundError):  # Another process may have settled it.
            if not is_finished(segment):
                continue
            if is_decided(segment.name):
                segment.rename(spool / segment.name)
                published += 1
            else:
                segment.unlink()
    if published:
        logger.warning("held.published segments=%d", published)
    return published
