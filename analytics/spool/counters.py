"""Counters of lost records, in a small file that is allocated before the disk is full.

Each process has its own file, mapped shared and preallocated, so that counting needs no disk space and survives any end
of the process. A new process takes over a dead one's file and goes on counting in it, so there are never more files
than processes at once.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import mmap
import os
import struct
import time
from dataclasses import dataclass
from itertools import count
from pathlib import Path

logger = logging.getLogger("analytics.spool")

# A file of counters has a magic with the version, then unsigned 64-bit numbers: lost, without content, queued, time of
# the last loss.
_LAYOUT = struct.Struct("<8sQQQQ")
_MAGIC = b"PGLOSS1\0"
_LOST, _WITHOUT_CONTENT, _QUEUED, _LAST_LOSS = (8, 16, 24, 32)
_NUMBER = struct.Struct("<Q")
_FILE_BYTES = 4096
_PATTERN = "losses-*.count"
_NO_FILE = -1


@dataclass(frozen=True)
class Losses:
    """The losses of all processes since the spool's folder was made.

    `lost` records could not be written and are gone; `without_content` were written without their texts; `queued` wait
    in the memory of living processes. `last_loss` is Unix time in microseconds, 0 if nothing was ever lost.
    """

    lost: int = 0
    without_content: int = 0
    queued: int = 0
    last_loss: int = 0


class LossCounters:
    """The counters of one process. Not thread-safe: the spool's writer holds its lock."""

    def __init__(self, directory: Path) -> None:
        """Counts in memory alone if the disk has no room for a file. Never raises for a failing disk."""
        self._directory = directory
        self._fd, self._map = _NO_FILE, mmap.mmap(-1, _FILE_BYTES)
        self.keep()

    def keep(self) -> None:
        if self._fd != _NO_FILE:
            return
        try:
            self._fd, kept = _take_file(self._directory)
        except OSError as error:
            logger.warning("spool.counters_failed directory=%s reason=%s", self._directory, error.strerror)
            return
        memory, self._map = self._map, kept
        # Records that the dead process had queued in its memory died with it.
        self._set(_LOST, self._get(_LOST) + self._get(_QUEUED) + _read(memory, _LOST))
        self._set(_WITHOUT_CONTENT, self._get(_WITHOUT_CONTENT) + _read(memory, _WITHOUT_CONTENT))
        self._set(_LAST_LOSS, max(self._get(_LAST_LOSS), _read(memory, _LAST_LOSS)))
        self._set(_QUEUED, _read(memory, _QUEUED))
        memory.close()

    def add_lost(self, records: int = 1) -> None:
        self._set(_LOST, self._get(_LOST) + records)
        self._set(_LAST_LOSS, time.time_ns() // 1000)

    def add_without_content(self) -> None:
        self._set(_WITHOUT_CONTENT, self._get(_WITHOUT_CONTENT) + 1)

    def set_queued(self, records: int) -> None:
        self._set(_QUEUED, records)

    def close(self) -> None:
        self._map.close()
        if self._fd != _NO_FILE:
            os.close(self._fd)
            self._fd = _NO_FILE

    def _get(self, at: int) -> int:
        return _read(self._map, at)

    def _set(self, at: int, value: int) -> None:
        _NUMBER.pack_into(self._map, at, value)


def read_losses(directory: Path) -> Losses:
    total = Losses()
    for path in directory.glob(_PATTERN):
        found = _read_file(path)
        total = Losses(
            total.lost + found.lost,
            total.without_content + found.without_content,
            total.queued + found.queued,
            max(total.last_loss, found.last_loss),
        )
    return total


def _read_file(path: Path) -> Losses:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return Losses()
    try:
        content = os.pread(fd, _LAYOUT.size, 0)
        if len(content) < _LAYOUT.size:
            return Losses()
        magic, lost, without_content, queued, last_loss = _LAYOUT.unpack(content)
        if magic != _MAGIC:
            return Losses()
        if queued and _is_free(fd):
            lost, queued = lost + queued, 0
        return Losses(lost, without_content, queued, last_loss)
    finally:
        os.close(fd)


def _is_free(fd: int) -> bool:
    """Uses a shared lock, since readers may ask at the same time."""
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _take_file(directory: Path) -> tuple[int, mmap.mmap]:
    for number in count(1):
        fd = os.open(directory / f"losses-{number}.count", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return fd, _mapped(fd)
        except BlockingIOError:
            os.close(fd)
        except OSError:
            os.close(fd)
            raise
    raise AssertionError("unreachable")


def _mapped(fd: int) -> mmap.mmap:
    # The file is written to and not only made longer: a write to a hole of a file on a full disk would be a SIGBUS.
    if os.fstat(fd).st_size < _FILE_BYTES:
        os.pwrite(fd, bytes(_FILE_BYTES), 0)
    if os.fstat(fd).st_size < _FILE_BYTES:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    kept = mmap.mmap(fd, _FILE_BYTES)
    if kept[: len(_MAGIC)] != _MAGIC:
        _LAYOUT.pack_into(kept, 0, _MAGIC, 0, 0, 0, 0)
    return kept


def _read(kept: mmap.mmap, at: int) -> int:
    value: int = _NUMBER.unpack_from(kept, at)[0]
    return value
