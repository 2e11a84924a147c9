"""The status of a spool, for pages and alarms: any process may read it, and nothing is written."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec

from analytics.spool import names
from analytics.spool.counters import Losses, read_losses
from analytics.spool.reader import read_stretch
from analytics.spool.shipper_state import StateFile


@dataclass(frozen=True)
class SpoolStatus:
    """The status of a spool's folder at one moment.

    `losses` count since the folder was made. `segment_bytes` are those of all segments, `unshipped_bytes` those that
    the store has not got yet, `oldest_unshipped_seconds` how long ago the first of their requests ended (0.0 when
    there are none). `dead_letters` are records and damaged ranges that are kept for a person. `free_bytes` are what
    the file system has left for the service.
    """

    losses: Losses
    segment_bytes: int
    unshipped_bytes: int
    oldest_unshipped_seconds: float
    dead_letters: int
    free_bytes: int


def read_status(directory: Path) -> SpoolStatus:
    """Returns the status of a spool. Raises OSError when its folder does not exist."""
    offsets = _offsets(directory)
    total = unshipped = 0
    oldest = 0.0
    for path in names.list_files(directory, names.SEGMENT):
        try:
            size = path.stat().st_size
            start = offsets.get(path.name, 0)
            if start < size:
                unshipped += size - start
                oldest = max(oldest, time.time() - _ended(path, start))
        except FileNotFoundError:
            continue  # The segment was shipped and deleted since the listing.
        total += size
    return SpoolStatus(
        losses=read_losses(directory),
        segment_bytes=total,
        unshipped_bytes=unshipped,
        oldest_unshipped_seconds=oldest,
        dead_letters=sum(1 for _ in (directory / "dead").glob("*.reason")),
        free_bytes=free_bytes(directory),
    )


def free_bytes(directory: Path) -> int:
    """Returns the bytes the service may still write to the file system of `directory`.

    Raises OSError when it is missing.
    """
    found = os.statvfs(directory)
    return found.f_bavail * found.f_frsize


def _offsets(directory: Path) -> dict[str, int]:
    try:
        return StateFile(directory).load().offsets
    except ValueError:
        return {}  # The shipper itself reports an unreadable state, and stops.


def _ended(path: Path, start: int) -> float:
    """Returns the time in Unix seconds when the record's request ended; for a damaged record, when it was written."""
    found = read_stretch(path, start, finished=True, max_frames=1)
    if found.frames:
        try:
            record = found.frames[0].record()
            return record.ts / 1_000_000 + record.latency_ms / 1000
        except msgspec.DecodeError:
            pass
    return path.stat().st_mtime
