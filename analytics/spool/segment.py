"""The segment that a writer appends to: locked from before it has its name, and free of halves of frames."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Sequence
from pathlib import Path

from analytics.spool import frames, names


class Segment:
    """An open file of its own. `size` is what has been written to it, in bytes, and `seed` that of its checksums."""

    __slots__ = ("fd", "path", "seed", "size")

    def __init__(self, fd: int, path: Path) -> None:
        self.fd = fd
        self.path = path
        self.size = 0
        self.seed = frames.segment_seed(path)

    @classmethod
    def open(cls, directory: Path) -> Segment:
        """Raises OSError when it cannot be made; then nothing is left of it."""
        path = names.new_path(directory, names.SEGMENT)
        hidden = path.with_suffix(".new")
        fd = open_locked(hidden)
        try:
            # Locked before it has its name: the shipper must never see a segment of a living writer unlocked.
            hidden.rename(path)
        except OSError:
            os.close(fd)
            hidden.unlink(missing_ok=True)
            raise
        return cls(fd, path)

    def append(self, buffers: Sequence[bytes]) -> None:
        """Writes all of it, or nothing and raises OSError: half a frame would stand before the next one."""
        size = sum(map(len, buffers))
        try:
            written = os.writev(self.fd, buffers)
        except OSError:
            self._cut()
            raise
        if written != size:
            self._cut()
            # What the disk took of it is all that it had room for.
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.size += size

    def close(self) -> None:
        """The shipper may finish it and delete it. Room that was set aside and not used is given back."""
        try:
            self._cut()
        finally:
            os.close(self.fd)

    def _cut(self) -> None:
        os.ftruncate(self.fd, self.size)


def open_locked(path: Path) -> int:
    """A new file for appending, locked for as long as its process lives or has it open. Raises OSError."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
    except OSError:
        os.close(fd)
        path.unlink(missing_ok=True)
        raise
    return fd
