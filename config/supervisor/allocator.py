from __future__ import annotations

import asyncio
import ctypes
import resource
from pathlib import Path

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_MEBIBYTE = 1024 * 1024
_SPARE_BYTES = 16 * _MEBIBYTE
_LOOK_SECONDS = 2.0
_OPTIONS = (
    # A block of this size goes back to the system when it is freed. Unless the size is fixed, glibc raises it to
    # that of the largest block so far, up to 32 MiB, and later blocks of large answers stay in the process.
    (_M_MMAP_THRESHOLD, _MEBIBYTE),
    # What is free at the end of the heap; less would shrink and grow the heap with each request.
    (_M_TRIM_THRESHOLD, 2 * _MEBIBYTE),
    # Each arena keeps free memory of its own, and threads that hold the interpreter's lock by turns need no more.
    (_M_ARENA_MAX, 2),
)


def return_freed_memory() -> None:
    """Sets the bounds for this process and all its forks; does nothing with another allocator."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for option, value in _OPTIONS:
            mallopt(option, value)


class Trimming:
    """Returns the free memory between used blocks, which the bounds do not reach, after a process has held much.

    It reads one short file every two seconds. A trim takes milliseconds, and follows only if resident memory exceeds
    that of the start by more than `_SPARE_BYTES` and has changed since the last trim.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        self._at_start = self._after_trim = _resident_bytes()
        if self._trim is not None:
            self._loop.call_later(_LOOK_SECONDS, self._look)

    def _look(self) -> None:
        # The next look is set first, so that a failure of this one does not prevent it.
        self._loop.call_later(_LOOK_SECONDS, self._look)
        resident = _resident_bytes()
        has_changed = abs(resident - self._after_trim) > _SPARE_BYTES // 4
        if resident > self._at_start + _SPARE_BYTES and has_changed and self._trim is not None:
            self._trim(0)
            self._after_trim = _resident_bytes()


def _resident_bytes() -> int:
    try:
        return int(Path("/proc/self/statm").read_bytes().split()[1]) * resource.getpagesize()
    except OSError:
        return 0
