"""Disk space reserved for the records that arrive when the disk is full.

The reserve is a future segment: an empty file with blocks beyond its end (`fallocate` with KEEP_SIZE), which is
appended to like any other once it has a segment's name. Meanwhile no other process can take that space.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from pathlib import Path

from analytics.spool import names
from analytics.spool.segment import Segment, open_locked

_KEEP_SIZE = 0x01
# The last space of a disk is left to the programs that need it now.
_LEFT_TO_OTHERS = 2


class Reserve:
    def __init__(self, directory: Path, size: int) -> None:
        """Raises OSError when the disk is full or the file system cannot reserve space."""
        found = os.statvfs(directory)
        if found.f_bavail * found.f_frsize < (1 + _LEFT_TO_OTHERS) * size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._directory = directory
        self._path = names.new_path(directory, names.RESERVE)
        self._fd = open_locked(self._path)
        try:
            _allocate(self._fd, size)
        except OSError:
            self.close()
            raise

    def to_segment(self) -> Segment:
        """Raises OSError when the file cannot be renamed, and then removes it."""
        path = names.new_path(self._directory, names.SEGMENT)
        try:
            self._path.rename(path)
        except OSError:
            self.close()
            raise
        return Segment(self._fd, path)

    def close(self) -> None:
        os.close(self._fd)
        self._path.unlink(missing_ok=True)


def _allocate(fd: int, size: int) -> None:
    if sys.platform != "linux":
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.fallocate(fd, _KEEP_SIZE, ctypes.c_long(0), ctypes.c_long(size)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
