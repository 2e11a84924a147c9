"""Collects the rows of an INSERT where chDB can read them: in anonymous memory, named through /proc."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO


class InsertData:
    """The rows of an INSERT as blocks in FORMAT Native, one after the other; `size` is in bytes.

    `path` is readable by this process only while the data lives.
    """

    def __init__(self, file: IO[bytes], path: str) -> None:
        self._file = file
        self.path = path
        self.size = 0

    def write(self, native: bytes | memoryview) -> None:
        """Appends a piece of a block."""
        self._file.write(native)
        self.size += len(native)

    def flush(self) -> None:
        self._file.flush()


@contextmanager
def insert_data() -> Iterator[InsertData]:
    """Lends a place for the rows.

    A file is used because chDB's own streaming insert loses errors of views and constraints; reading a file reports
    them all.
    """
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("insert", os.MFD_CLOEXEC), "wb") as file:
            yield InsertData(file, f"/proc/self/fd/{file.fileno()}")
    else:  # macOS has no anonymous files in memory.
        with tempfile.NamedTemporaryFile(prefix="insert-") as named:
            yield InsertData(named.file, named.name)
