"""Ends the engine when a merge on a full disk has left a part without content, so that its sources survive.

chDB 26.9 commits a merge even if the disk refused all its writes: every file of the new part is empty, and queries
fail. The source parts stay for eight more minutes (`old_parts_lifetime`), but an orderly stop removes them. At the next
start the engine sets the broken part aside and loads its sources.
"""

from __future__ import annotations

import logging
import os
import shutil
import threading
import time
from pathlib import Path

from analytics.clickhouse.engine.chdb_connection import EXIT_BROKEN

logger = logging.getLogger("analytics.engine")

_LOOK_SECONDS = 5.0
# Where there was always more space than this, the disk was not full.
_TIGHT_BYTES, _AFTERWARDS_SECONDS = 1 << 30, 120.0
# An engine needs some space to start, for which it waits while the sources are there.
_ROOM_BYTES, _PATIENCE_SECONDS = 16 << 20, 300.0


def watch_for_empty_parts(directory: Path, stop: threading.Event) -> None:
    tight_until, since = 0.0, 0.0
    while not stop.wait(_LOOK_SECONDS):
        now, free = time.monotonic(), shutil.disk_usage(directory).free
        if free < _TIGHT_BYTES:
            tight_until = now + _AFTERWARDS_SECONDS
        found = _empty_parts(directory) if now <= tight_until else []
        since = (since or now) if found else 0.0
        if found and (free >= _ROOM_BYTES or now - since >= _PATIENCE_SECONDS):
            _leave(found)


def leave_if_parts_are_empty(directory: Path) -> None:
    """Exits at once if there are empty parts: an orderly stop would remove their sources."""
    if found := _empty_parts(directory):
        _leave(found)


def _empty_parts(directory: Path) -> list[str]:
    found = []
    for checksums in directory.glob("store/*/*/*_*_*_*/checksums.txt"):
        try:
            is_empty = checksums.stat().st_size == 0
        except FileNotFoundError:
            continue  # The part was removed meanwhile.
        if is_empty and not checksums.parent.name.startswith(("tmp", "delete_tmp")):
            found.append(checksums.parent.name)
    return found


def _leave(parts: list[str]) -> None:
    logger.critical("engine.empty_parts parts=%s", ",".join(parts))
    os._exit(EXIT_BROKEN)
