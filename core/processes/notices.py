"""Notices: small messages between processes of one host, each in a file that outlives its writer.

A file has a fixed size and preallocated blocks, so it can be replaced while the disk is full. Its writer holds a lock
on it, which tells readers whether the writer lives.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import struct
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

from django.conf import settings

logger = logging.getLogger("core.notices")

_ENDING = ".notice"
_HEADER = struct.Struct("<4sII")
_MAGIC = b"PGN1"
_READS = 3


class NoticeWriter:
    """Neither `put`, which replaces the message, nor the constructor raises on a full disk."""

    def __init__(self, folder: Path, name: str, *, max_bytes: int) -> None:
        self._path = folder / f"{name}{_ENDING}"
        self._max_bytes = max_bytes
        self._fd = -1
        self._failed = False

    def put(self, message: bytes) -> None:
        if self._fd < 0:
            self._open()
        if self._fd < 0 or len(message) > self._max_bytes:
            return
        with suppress(OSError):
            os.pwrite(self._fd, _HEADER.pack(_MAGIC, len(message), crc32(message)) + message, 0)

    def close(self) -> None:
        if self._fd >= 0:
            self._path.unlink(missing_ok=True)
            os.close(self._fd)
            self._fd = -1

    def _open(self) -> None:
        hidden = self._path.with_suffix(".new")
        fd = -1
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            fd = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            if os.pwrite(fd, bytes(_HEADER.size + self._max_bytes), 0) < _HEADER.size + self._max_bytes:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            # The file is locked before it gets its name, so that readers never take its writer for dead.
            fcntl.flock(fd, fcntl.LOCK_EX)
            hidden.rename(self._path)
        except OSError as error:
            if fd >= 0:
                os.close(fd)
                hidden.unlink(missing_ok=True)
            if not self._failed:
                self._failed = True
                logger.warning("notice.not_written name=%s reason=%s", self._path.name, error.strerror)
            return
        self._fd, self._failed = fd, False


def notices_dir() -> Path:
    folder: Path = settings.RUN_DIR / "notices"
    return folder


@dataclass(frozen=True)
class Notice:
    name: str
    message: bytes
    is_alive: bool


def read_notice(folder: Path, name: str) -> Notice | None:
    return _read(folder / f"{name}{_ENDING}")


def read_notices(folder: Path, prefix: str) -> list[Notice]:
    found: list[Notice] = []
    for path in sorted(folder.glob(f"{prefix}*{_ENDING}")):
        notice = _read(path)
        if notice is not None and notice.is_alive:
            found.append(notice)
        elif notice is not None:
            path.unlink(missing_ok=True)
    return found


def _read(path: Path) -> Notice | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        message = _message(fd)
        return None if message is None else Notice(path.name.removesuffix(_ENDING), message, not _is_free(fd))
    finally:
        os.close(fd)


def _message(fd: int) -> bytes | None:
    """Reads again if the checksum fails, because the message was being replaced."""
    for _ in range(_READS):
        content = os.pread(fd, os.fstat(fd).st_size, 0)
        if len(content) < _HEADER.size:
            return None
        magic, length, check = _HEADER.unpack_from(content)
        message = content[_HEADER.size : _HEADER.size + length]
        if magic == _MAGIC and crc32(message) == check:
            return message
    return None


def _is_free(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
