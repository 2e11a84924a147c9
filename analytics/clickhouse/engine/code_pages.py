from __future__ import annotations

import ctypes
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

logger = logging.getLogger("analytics.engine")

# chDB's code and constants, half a gigabyte, are larger; other libraries are smaller and shared by many processes.
LARGE_BYTES = 32 << 20
_SMAPS = Path("/proc/self/smaps")
_HEADER = re.compile(r"(?P<start>[0-9a-f]+)-(?P<end>[0-9a-f]+) (?P<rights>[r-][w-][x-][ps]) \S+ \S+ (?P<inode>\d+)")
_MADV_DONTNEED = 4


@dataclass(slots=True)
class _Mapping:
    start: int
    end: int
    rights: str
    from_file: bool
    # Pages that the process has written, which no file can give back.
    own_kilobytes: int = 0

    @property
    def is_large_code(self) -> bool:
        is_code = self.from_file and "w" not in self.rights and self.own_kilobytes == 0
        return is_code and self.end - self.start >= LARGE_BYTES


def release_code_pages() -> None:
    """Drops the code pages of large libraries from this process, if the system has a list of mappings.

    Loading chDB touches code all over its half gigabyte, and the kernel maps neighbours with each page; most are never
    used again (docs/performance.md, "Memory"). Dropped pages are mapped again on use, from the page cache while the
    kernel keeps the file there. Pages that were written to stay. Source: madvise(2), proc_pid_smaps(5).
    """
    madvise = getattr(ctypes.CDLL(None, use_errno=True), "madvise", None)
    if madvise is None or not _SMAPS.exists():
        return
    for mapping in list(_mappings()):
        if mapping.is_large_code:
            size = mapping.end - mapping.start
            if madvise(ctypes.c_void_p(mapping.start), ctypes.c_size_t(size), _MADV_DONTNEED) != 0:
                logger.info("engine.code_pages_kept errno=%d", ctypes.get_errno())


def _mappings() -> Iterator[_Mapping]:
    mapping: _Mapping | None = None
    for line in _SMAPS.read_text(encoding="utf-8", errors="replace").splitlines():
        if header := _HEADER.match(line):
            if mapping is not None:
                yield mapping
            start, end = int(header["start"], 16), int(header["end"], 16)
            mapping = _Mapping(start, end, header["rights"], from_file=header["inode"] != "0")
        elif mapping is not None and line.startswith("Anonymous:"):
            mapping.own_kilobytes = int(line.split()[1])
    if mapping is not None:
        yield mapping
