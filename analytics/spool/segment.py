"""The segment that a writer appends to: locked before it gets its name, and without partial frames."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Sequence
from pathlib import Path

from analytics.spool import frames, names


class Segment:
    """`size` is in bytes; `seed` is the start value of the checksums."""

    __slots__ = ("fd", "path", "seed", "size")

    def __init__(self, fd: int, path: Path) -> None:
        self.fd = fd
        self.path = path
        self.size = 0
        self.seed = frames.segment_seed(path)

    @classmethod
    def open(cls, directory: Path) -> Segment:
        return cls.create(names.new_path(directory, names.SEGMENT))

    @classmethod
    def create(cls, path: Path) -> Segment:
        hidden = path.with_suffix(".new")
        fd = open_locked(hidden)
        try:
            # The file is locked before it has its name: the shipper must never see a segment of a living writer
            # unlocked.
            hidden.rename(path)
        except OSError:
            os.close(fd)
            hidden.unlink(missing_ok=True)
            raise
        return cls(fd, path)

    def append(self, buffers: Sequence[bytes]) -> None:
        """Writes a whole frame, or nothing and raises OSError: half a frame would damage the segment."""
        size = 0
        for buffer in buffers:
            size += len(buffer)
        try:
            written = os.writev(self.fd, buffers)
        except OSError:
            self._cut()
            raise
        if written != size:
            self._cut()
            # The disk had room for the written part of the frame only.
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.size += size

    def close(self) -> None:
        """Unused reserved space is given back; the shipper may then finish and delete the segment."""
        try:
            self._cut()
        finally:
            os.close(self.fd)

    def _cut(self) -> None:
        os.ftruncate(self.fd, self.size)


def open_locked(path: Path) -> int:
    """Returns a new file for appending, locked until its process ends or closes it. Raises OSError."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
    except OSError:
        os.close(fd)
        path.unlink(missing_ok=True)
        raise
    return fd
