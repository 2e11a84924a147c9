"""Writes records to append-only segments on local disk: one system call each, safe from a kill at any moment.

What `append` has returned for is in the kernel's page cache and outlives the process, however it ends. Power loss may
take the last seconds: an fsync per record would cost more than the request.
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
import time
from pathlib import Path

from analytics.contracts import SpoolEntry
from analytics.spool import frames, names

logger = logging.getLogger("analytics.spool")

DEFAULT_SEGMENT_BYTES = 64 * 1024 * 1024
DEFAULT_QUOTA_BYTES = 4 * 1024 * 1024 * 1024
_QUOTA_CHECK_SECONDS = 5.0


class SpoolWriter:
    """Appends records to a segment of its own. One per process; threads may share it, forks may not.

    The segment is locked (`flock`) while it may grow: a segment that can be locked by somebody else is complete.
    When the segments of the directory exceed `quota_bytes`, records are written without content until they do not.
    `lost` counts records that could not be written to disk at all, `without_content` those stripped by the quota.
    """

    def __init__(
        self,
        directory: Path,
        *,
        segment_bytes: int = DEFAULT_SEGMENT_BYTES,
        quota_bytes: int = DEFAULT_QUOTA_BYTES,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.lost = 0
        self.without_content = 0
        self._directory = directory
        self._segment_bytes = segment_bytes
        self._quota_bytes = quota_bytes
        self._lock = threading.Lock()
        self._fd = -1
        self._size = 0
        self._seed = 0
        self._failing = False
        self._over_quota = False
        self._next_quota_check = 0.0

    def append(self, entry: SpoolEntry) -> None:
        """Write one record. Never raises for a disk that fails: the answer to the client must not depend on it."""
        with self._lock:
            if time.monotonic() >= self._next_quota_check:
                self._check_quota()
            if self._over_quota and (entry.request or entry.response):
                entry = SpoolEntry(entry.record)
                self.without_content += 1
            # A full disk or a bad block may concern this segment only, so the second try goes to a fresh one.
            if self._write(entry) or self._write(entry):
                if self._failing:
                    self._failing = False
                    logger.warning("spool.write_recovered directory=%s lost=%d", self._directory, self.lost)
                return
            self.lost += 1
            if not self._failing:
                self._failing = True
                logger.error("spool.record_lost directory=%s request_id=%s", self._directory, entry.record.request_id)

    def close(self) -> None:
        """Let go of the segment; the shipper may finish and delete it. `append` afterwards opens a new one."""
        with self._lock:
            self._close_segment()

    def _write(self, entry: SpoolEntry) -> bool:
        try:
            if self._fd < 0 or self._size >= self._segment_bytes:
                self._open_segment()
            buffers = frames.pack(entry, self._seed)
            size = sum(map(len, buffers))
            if os.writev(self._fd, buffers) == size:
                self._size += size
                return True
            # Half a frame in the middle of a segment would hide what follows it.
            os.ftruncate(self._fd, self._size)
            reason = "short write"
        except OSError as error:
            reason = error.strerror or type(error).__name__
        if not self._failing:
            logger.warning("spool.write_failed directory=%s reason=%s", self._directory, reason)
        self._close_segment()
        return False

    def _open_segment(self) -> None:
        self._close_segment()
        path = names.new_path(self._directory, names.SEGMENT)
        # Locked before it has its name: the shipper must never see a segment of a living writer unlocked.
        hidden = path.with_suffix(".new")
        fd = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            hidden.rename(path)
        except OSError:
            os.close(fd)
            raise
        self._fd, self._size, self._seed = fd, 0, frames.segment_seed(path)

    def _close_segment(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _check_quota(self) -> None:
        self._next_quota_check = time.monotonic() + _QUOTA_CHECK_SECONDS
        over = spool_bytes(self._directory) > self._quota_bytes
        if over != self._over_quota:
            self._over_quota = over
            event = "spool.quota_exceeded" if over else "spool.quota_recovered"
            logger.warning("%s directory=%s without_content=%d", event, self._directory, self.without_content)


def spool_bytes(directory: Path) -> int:
    """Bytes in segments that wait to be shipped or deleted."""
    total = 0
    for path in directory.glob(f"*{names.SEGMENT}"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:
            continue  # shipped and deleted since the listing
    return total
