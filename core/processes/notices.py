"""Notices: small messages between the processes of one host, each in a file that outlives its writer.

A notice is a file of fixed size whose blocks are allocated when it is made, so that it can be replaced while the disk
is full. Its writer holds a lock on it, by which readers tell living writers from dead ones.
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
    """The writer of one notice. Neither `put`, which replaces the message, nor the constructor raises on a full
    disk."""

    def __init__(self, folder: Path, name: str, *, max_bytes: int) -> None:
        self._path = folder / f"{name}{_ENDING}"
        self._max_bytes = max_bytes
        self._fd = -1
        self._failed = False

    def put(self, message: bytes) -> None:
        """Replaces the message. A message that is too long is dropped, and the previous one stays."""
        if self._fd < 0:
            self._open()
        if self._fd < 0 or len(message) > self._max_bytes:
            return
        with suppress(OSError):
            os.pwrite(self._fd, _HEADER.pack(_MAGIC, len(message), crc32(message)) + message, 0)

    def close(self) -> None:
        """Removes the notice."""
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
    """Returns the folder of the notices by which the host's monitor and its processes know of each other."""
    folder: Path = settings.RUN_DIR / "notices"
    return folder


@dataclass(frozen=True)
class Notice:
    """A notice as it was read; `is_alive` says whether its writer still runs."""

    name: str
    message: bytes
    is_alive: bool


def read_notice(folder: Path, name: str) -> Notice | None:
    """Returns the notice, or None when there is none or its content is incomplete."""
    return _read(folder / f"{name}{_ENDING}")


def read_notices(folder: Path, prefix: str) -> list[Notice]:
    """Returns the notices of living processes and removes those of dead ones."""
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
    """Returns the message of a file, read again when its checksum fails because it was being replaced."""
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
