"""The status of a spool, for pages and alarms. Any process may read it; nothing is written."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
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

    `losses` count since the folder was made. `segment_bytes` are all bytes in segments, `unshipped_bytes` those that
    the store does not have yet. `oldest_unshipped_seconds` is the age of the first unshipped request's end, 0.0 without
    one. `dead_letters` are records and damaged ranges kept for a person. `free_bytes` is what the service may still
    write to the file system.
    """

    losses: Losses
    segment_bytes: int
    unshipped_bytes: int
    oldest_unshipped_seconds: float
    dead_letters: int
    free_bytes: int


def read_status(directory: Path) -> SpoolStatus:
    waiting = list(_unshipped(directory))
    return SpoolStatus(
        losses=read_losses(directory),
        segment_bytes=sum(one.size for one in waiting),
        unshipped_bytes=sum(one.unshipped for one in waiting),
        oldest_unshipped_seconds=max((one.age_seconds for one in waiting), default=0.0),
        dead_letters=sum(1 for _ in (directory / "dead").glob("*.reason")),
        free_bytes=free_bytes(directory),
    )


def oldest_unshipped_seconds(directory: Path) -> float:
    """Returns how long ago the first unshipped request ended; 0.0 if there is none or no folder."""
    return max((one.age_seconds for one in _unshipped(directory)), default=0.0)


def free_bytes(directory: Path) -> int:
    found = os.statvfs(directory)
    return found.f_bavail * found.f_frsize


@dataclass(frozen=True)
class _Waiting:
    size: int
    unshipped: int
    age_seconds: float


def _unshipped(directory: Path) -> Iterator[_Waiting]:
    offsets = _offsets(directory)
    for path in names.list_files(directory, names.SEGMENT):
        try:
            size = path.stat().st_size
            start = offsets.get(path.name, 0)
            age = max(time.time() - _ended(path, start), 0.0) if start < size else 0.0
        except FileNotFoundError:
            continue  # The segment was shipped and deleted since the listing.
        yield _Waiting(size, max(size - start, 0), age)


def _offsets(directory: Path) -> dict[str, int]:
    try:
        return StateFile(directory).load().offsets
    except ValueError:
        return {}  # The shipper itself reports an unreadable state, and stops.


def _ended(path: Path, start: int) -> float:
    found = read_stretch(path, start, finished=True, max_frames=1)
    if found.frames:
        try:
            record = found.frames[0].record()
            return record.ts / 1_000_000 + record.latency_ms / 1000
        except msgspec.DecodeError:
            pass
    return path.stat().st_mtime
