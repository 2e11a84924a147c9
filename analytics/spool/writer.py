"""Writes records to append-only segments on local disk: one system call each, safe from a kill at any moment.

Once `append` has returned, the record is in the kernel's page cache and outlives the process, however it ends. A power
loss may take the last seconds: an fsync per record would cost more than the request.

On a full disk, records go into reserved space (`reserve`), then into memory, and when that is full too they are counted
as lost (`counters`). Queued records are written in order once the disk has space again.
"""

from __future__ import annotations

import enum
import errno
import logging
import os
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

from analytics.request_log.record import SpoolEntry
from analytics.spool import frames, names
from analytics.spool.counters import LossCounters
from analytics.spool.queue import EntryQueue, without_content
from analytics.spool.reserve import Reserve
from analytics.spool.segment import Segment
from core.processes.background_tasks import keep_thread_running

logger = logging.getLogger("analytics.spool")

DEFAULT_SEGMENT_BYTES = 64 * 1024 * 1024
DEFAULT_QUOTA_BYTES = 4 * 1024 * 1024 * 1024
DEFAULT_RESERVE_BYTES = 16 * 1024 * 1024
DEFAULT_QUEUE_BYTES = 32 * 1024 * 1024
_HOUSEKEEPING_SECONDS = 5.0
_RETRY_SECONDS = 0.25
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
# With less space than this, and without a reserve, the next record may find the disk full.
_LITTLE_SPACE = 1024 * 1024


class Room(enum.Enum):
    """Where the next record would go. In memory it is lost with the process if the disk stays full."""

    NONE = "none"
    MEMORY = "memory"
    DISK = "disk"


class SpoolWriter:
    """Appends records to its own segment. A process has one writer; threads may share it, forks may not.

    The segment is locked (`flock`) while it may grow: a segment that another process can lock is complete. While the
    directory's segments exceed `quota_bytes`, records are written without content. `reserve_bytes` of disk and up to
    `queue_bytes` of memory are for a full disk (0 for neither). `lost` counts this writer's records that were written
    nowhere, `without_content` those without their texts.
    """

    def __init__(
        self,
        directory: Path,
        *,
        segment_bytes: int = DEFAULT_SEGMENT_BYTES,
        quota_bytes: int = DEFAULT_QUOTA_BYTES,
        reserve_bytes: int = DEFAULT_RESERVE_BYTES,
        queue_bytes: int = DEFAULT_QUEUE_BYTES,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.lost = 0
        self.without_content = 0
        self._directory = directory
        self._segment_bytes = segment_bytes
        self._quota_bytes = quota_bytes
        self._reserve_bytes = reserve_bytes
        self._lock = threading.Lock()
        self._segment: Segment | None = None
        self._reserve: Reserve | None = None
        self._queue = EntryQueue(queue_bytes)
        # The disk counts as full from the first failed write until it takes records, and reserves space, as before.
        self._failing = False
        self._losing = False
        self._over_quota = False
        self._next_housekeeping = 0.0
        self._drainer: threading.Thread | None = None
        self._stop = threading.Event()
        # The counters and the reserve are made while the disk has space.
        self._counters: LossCounters | None = LossCounters(directory)
        self._make_reserve()

    @property
    def room(self) -> Room:
        if not self._queue.has_room:
            return Room.NONE
        if self._queue:
            return Room.MEMORY
        return Room.DISK if self._reserve is not None or self._has_space() else Room.MEMORY

    @property
    def has_room(self) -> bool:
        return self.room is not Room.NONE

    def _has_space(self) -> bool:
        try:
            found = os.statvfs(self._directory)
        except OSError:
            return False
        return found.f_bavail * found.f_frsize >= _LITTLE_SPACE

    def append(self, entry: SpoolEntry) -> None:
        """Never raises for a failing disk: the answer to the client must not depend on it."""
        with self._lock:
            if time.monotonic() >= self._next_housekeeping:
                self._keep_house()
            if self._over_quota and (entry.request or entry.response):
                entry = self._strip(entry)
            # Waiting records are written first, in order.
            if self._queue or not self._write(entry):
                self._put_by(entry)

    def close(self) -> None:
        """The shipper may then finish and delete the segment. A later `append` opens a new one."""
        with self._lock:
            self._stop.set()
            self._stop, self._drainer = threading.Event(), None
            while self._write_first():
                pass
            self._lose(len(self._queue))
            self._queue.clear()
            self._close_segment()
            if self._reserve is not None:
                self._reserve.close()
                self._reserve = None
            if self._counters is not None:
                self._counters.set_queued(0)
                self._counters.close()
                self._counters = None
            self._next_housekeeping = 0.0

    def _write(self, entry: SpoolEntry) -> bool:
        try:
            segment = self._segment
            # The rest of a reserve would be given back with the segment that it has become.
            if segment is None or (segment.size >= self._segment_bytes and not self._failing):
                segment = self._use(Segment.open(self._directory))
            meta = frames.encode_meta(entry.record)
            segment.append(frames.pack(meta, entry.request, entry.response, segment.seed))
        except OSError as error:
            if not self._failing:
                self._failing = True
                reason = error.strerror or type(error).__name__
                logger.warning("spool.write_failed directory=%s reason=%s", self._directory, reason)
            return self._write_elsewhere(entry, error)
        return True

    def _write_elsewhere(self, entry: SpoolEntry, failure: OSError) -> bool:
        """Uses the reserve on a full disk, or a new segment if the current one may be at fault."""
        try:
            if failure.errno in _NO_ROOM:
                reserve, self._reserve = self._reserve, None
                if reserve is None:
                    return False
                segment = self._use(reserve.to_segment())
            elif self._segment is None or self._segment.size:
                segment = self._use(Segment.open(self._directory))
            else:
                return False
            meta = frames.encode_meta(entry.record)
            segment.append(frames.pack(meta, entry.request, entry.response, segment.seed))
        except OSError:
            return False
        return True

    def _use(self, segment: Segment) -> Segment:
        self._close_segment()
        self._segment = segment
        return segment

    def _close_segment(self) -> None:
        segment, self._segment = self._segment, None
        if segment is not None:
            with suppress(OSError):
                segment.close()

    def _put_by(self, entry: SpoolEntry) -> None:
        if not self._queue.fits(entry) and (entry.request or entry.response):
            entry = self._strip(entry)
        if not self._queue.fits(entry):
            self._lose(1, entry.record.request_id)
            return
        self._queue.put(entry)
        self._count().set_queued(len(self._queue))
        if self._drainer is None:
            with suppress(RuntimeError):  # The process has no more threads; the next record tries again.
                self._drainer = keep_thread_running("spool.drain", partial(self._drain, self._stop))

    def _strip(self, entry: SpoolEntry) -> SpoolEntry:
        self.without_content += 1
        self._count().add_without_content()
        return without_content(entry)

    def _lose(self, records: int, request_id: str = "") -> None:
        if not records:
            return
        self.lost += records
        self._count().add_lost(records)
        if not self._losing:
            self._losing = True
            logger.error(
                "spool.record_lost directory=%s records=%d request_id=%s", self._directory, records, request_id
            )

    def _count(self) -> LossCounters:
        if self._counters is None:
            self._counters = LossCounters(self._directory)
        return self._counters

    def _drain(self, stop: threading.Event) -> None:
        """Runs in its own thread, so that queued records need not wait for the next record."""
        while not stop.wait(_RETRY_SECONDS):
            # The lock is free between two records, so that a long queue holds up no request.
            while self._write_first_locked(stop):
                pass
            with self._lock:
                if stop.is_set():
                    return
                if not self._queue:
                    self._drainer = None
                    self._make_reserve()
                    self._note_recovery()
                    return

    def _write_first_locked(self, stop: threading.Event) -> bool:
        with self._lock:
            return not stop.is_set() and self._write_first()

    def _write_first(self) -> bool:
        if not self._queue or not self._write(self._queue.first):
            return False
        self._queue.drop_first()
        self._count().set_queued(len(self._queue))
        return True

    def _make_reserve(self) -> None:
        if self._reserve is None and self._reserve_bytes:
            try:
                self._reserve = Reserve(self._directory, self._reserve_bytes)
            except OSError as error:
                if not self._failing:
                    logger.info("spool.no_reserve directory=%s reason=%s", self._directory, error.strerror)

    def _note_recovery(self) -> None:
        if self._failing:
            self._failing = self._losing = False
            self._count().keep()
            logger.warning("spool.write_recovered directory=%s lost=%d", self._directory, self.lost)

    def _keep_house(self) -> None:
        self._next_housekeeping = time.monotonic() + _HOUSEKEEPING_SECONDS
        self._make_reserve()
        if not self._queue and self._reserve is not None:
            self._note_recovery()
        over = spool_bytes(self._directory) > self._quota_bytes
        if over != self._over_quota:
            self._over_quota = over
            event = "spool.quota_exceeded" if over else "spool.quota_recovered"
            logger.warning("%s directory=%s without_content=%d", event, self._directory, self.without_content)


def spool_bytes(directory: Path) -> int:
    total = 0
    for path in directory.glob(f"*{names.SEGMENT}"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:
            continue  # The segment was shipped and deleted since the listing.
    return total
