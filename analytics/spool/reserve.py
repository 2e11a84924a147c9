"""Room on the disk that is set aside while there is some, for the records that come when there is none.

The reserve is a segment to be: an empty file with blocks of its own beyond its end (`fallocate` with KEEP_SIZE), which
is appended to like any other once it has a segment's name. Nobody else can take that room meanwhile.
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
# The last room of a disk is for those who need it now.
_LEFT_TO_OTHERS = 2


class Reserve:
    """`size` bytes of room in `directory`; it is used once."""

    def __init__(self, directory: Path, size: int) -> None:
        """Raises OSError when the disk has not got the room, or its file system cannot set any aside."""
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
        """The same file as a segment. Raises OSError when it cannot be renamed; then it is gone."""
        path = names.new_path(self._directory, names.SEGMENT)
        try:
            self._path.rename(path)
        except OSError:
            self.close()
            raise
        return Segment(self._fd, path)

    def close(self) -> None:
        """Gives the room back."""
        os.close(self._fd)
        self._path.unlink(missing_ok=True)


def _allocate(fd: int, size: int) -> None:
    if sys.platform != "linux":
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.fallocate(fd, _KEEP_SIZE, ctypes.c_long(0), ctypes.c_long(size)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
