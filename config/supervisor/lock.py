"""One `serve` per VAR_DIR: an advisory lock that the kernel releases however its holder ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class AlreadyRunningError(Exception):
    """Another process holds the lock; `pid` is what it wrote there, or 0."""

    def __init__(self, pid: int) -> None:
        super().__init__(f"process {pid} holds the lock")
        self.pid = pid


@contextmanager
def only_one(file: Path, *, pid: int) -> Iterator[None]:
    """Holds the lock, and writes `pid` into its file, so that a second process can name the first. Raises
    AlreadyRunningError."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            written = os.read(descriptor, 32).decode("ascii", "replace").strip()
            raise AlreadyRunningError(int(written) if written.isdigit() else 0) from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{pid}\n".encode())
        yield
    finally:
        os.close(descriptor)
