"""The process's one writer of records, which outlives the runtimes that use it.

It owns the records that wait in memory on a full disk, and the reserve. A writer that ended with each Celery task would
lose those records, and never get the reserve again before the disk has space.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

from analytics.spool.writer import Room, SpoolWriter

_writers: dict[tuple[int, Path], SpoolWriter] = {}
_making = threading.Lock()
# Requests that a dead worker left are looked for in its newest segment.
_turn = threading.Lock()


def process_spool() -> SpoolWriter:
    """Makes the process's writer on the first call; a fork makes its own."""
    key = (os.getpid(), settings.SPOOL_DIR)
    with _making:
        if key not in _writers:
            made = _writers[key] = SpoolWriter(
                settings.SPOOL_DIR,
                segment_bytes=settings.SPOOL_SEGMENT_BYTES,
                reserve_bytes=settings.SPOOL_RESERVE_BYTES,
                queue_bytes=settings.SPOOL_QUEUE_BYTES,
            )
            atexit.register(made.close)
        return _writers[key]


def may_ask(spool: SpoolWriter) -> bool:
    """Returns whether background work may ask a model: only while the record would be on disk or in the reserve.

    It can wait, unlike clients, whose requests are served as long as a record has a place in memory (`/readyz`).
    """
    return spool.room is Room.DISK


@contextmanager
def background_turn() -> Iterator[bool]:
    """Yields whether background work may begin: a process does one at a time, and none without a place for records."""
    if not _turn.acquire(blocking=False):
        yield False
        return
    try:
        yield may_ask(process_spool())
    finally:
        _turn.release()
