"""Writes files durably, and replaces small ones atomically, also on a full disk."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def replace(path: Path, content: bytes) -> None:
    """Replaces the file's content, and returns when the new content would survive a loss of power.

    A reader sees the old content or the new one. The new content is written over a draft, the content before the last,
    whose blocks were kept for it: a file that does not grow needs no room. Raises OSError; then the old content stands.
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
    """Writes a file of the owner's, and returns when its content would survive a loss of power; its name does so after
    `sync_folder`. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.writelines(parts)
        file.flush()
        os.fsync(descriptor)


def _exchange(draft: Path, path: Path) -> None:
    """Swaps the two files: the draft becomes the file, and the old file becomes the next draft."""
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
    """Has the names of a folder's files survive a loss of power. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
