from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOCK_NAME = "analytics_engine.lock"


class DirectoryLockedError(Exception):
    """Another process holds the directory. The message is one line for the operator."""


@contextmanager
def directory_lock(directory: Path) -> Iterator[None]:
    """The kernel releases the lock however the process ends.

    chDB has its own lock, but reports it as "Error initializing EmbeddedServer" without a reason.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if directory.stat().st_uid == os.geteuid():
        directory.chmod(0o700)  # The directory may exist already, with another mode.
    descriptor = os.open(directory / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
            message = f"The analytics directory {directory} is in use by another engine (process {holder})."
            raise DirectoryLockedError(message) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)
