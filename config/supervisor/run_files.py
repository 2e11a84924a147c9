"""The small files of VAR_DIR/run: addresses and process ids. A reader sees the whole text or no file."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def write(file: Path, text: str) -> None:
    """Replaces a file atomically. Raises OSError if the disk is full, and leaves the file unchanged."""
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        draft.write_text(f"{text}\n", encoding="utf-8")
        draft.replace(file)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def read(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8").strip() or None
    except FileNotFoundError:
        return None


def remove_all(folder: Path) -> None:
    for pattern in ("*.url", "*.pid", "*.port"):
        for file in folder.glob(pattern):
            with suppress(OSError):
                file.unlink(missing_ok=True)
