"""Writes files durably, and replaces small ones atomically, even on a full disk."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def replace(path: Path, content: bytes) -> None:
    """Returns when the new content would survive a power loss; a reader sees the old content or the new one.

    The new content overwrites a draft, the content before the last, whose blocks were kept: a file that does not grow
    needs no disk space. On OSError the old content stays.
    """
    draft = _sibling(path, "next")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if os.pwrite(descriptor, content, 0) != len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.ftruncate(descriptor, len(content))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    _exchange(draft, path)
    sync_folder(path.parent)


def write(path: Path, parts: Iterable[bytes]) -> None:
    """Writes a file that only its owner can read, and returns when its content would survive a power loss.

    Its name survives only after `sync_folder`. Raises OSError.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.writelines(parts)
        file.flush()
        os.fsync(descriptor)


def _exchange(draft: Path, path: Path) -> None:
    last = _sibling(path, "last")
    with suppress(OSError):
        last.unlink(missing_ok=True)
        os.link(path, last)
    draft.rename(path)
    with suppress(OSError):
        last.rename(draft)


def _sibling(path: Path, part: str) -> Path:
    return path.with_name(f"{path.stem}.{part}{path.suffix}")


def sync_folder(folder: Path) -> None:
    """Makes the names of a folder's files survive a power loss. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
