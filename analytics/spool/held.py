"""Records that join the spool all together or not at all: the up to 50,000 results of a batch.

They are appended to a segment in a folder that no shipper reads. Once their owner has committed in a database,
`publish` moves the segment into the spool. If the process dies in between, `settle_held` publishes what was committed
and deletes the rest.
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
    """A segment that its owner fills, then publishes or discards. Not thread-safe."""

    def __init__(self, spool: Path) -> None:
        folder = spool / _FOLDER
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._spool = spool
        # Segments of a worker tell which of its requests were recorded. These records are of none of its requests, so
        # that the name has a token of its own.
        name = f"{time.time_ns() // 1000}-{os.getpid()}-{secrets.token_hex(4)}{names.SEGMENT}"
        self._segment = Segment.create(folder / name)

    @property
    def name(self) -> str:
        return self._segment.path.name

    def append(self, entry: SpoolEntry) -> None:
        meta = frames.encode_meta(entry.record)
        self._segment.append(frames.pack(meta, entry.request, entry.response, self._segment.seed))

    def publish(self) -> None:
        """Moves the records into the spool. On OSError they stay for `settle_held`."""
        try:
            # The segment is closed, and with that unlocked, behind its move: a shipper takes it only when it is whole.
            self._segment.path.rename(self._spool / self.name)
        finally:
            self._segment.close()

    def discard(self) -> None:
        self._segment.path.unlink(missing_ok=True)
        with suppress(OSError):
            self._segment.close()


def settle_held(spool: Path, is_decided: Callable[[str], bool]) -> int:
    """Publishes dead owners' segments for which `is_decided`, deletes their others, returns how many were published.

    Idempotent, and safe in several processes at once. Raises what `is_decided` raises.
    """
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
