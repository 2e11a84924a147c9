from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO


class InsertData:
    """The rows of an INSERT as consecutive blocks in FORMAT Native, in anonymous memory; `size` is in bytes.

    Only this process can read `path`, and only while the data lives.
    """

    def __init__(self, file: IO[bytes], path: str) -> None:
        self._file = file
        self.path = path
        self.size = 0

    def write(self, native: bytes | memoryview) -> None:
        self._file.write(native)
        self.size += len(native)

    def flush(self) -> None:
        self._file.flush()


@contextmanager
def insert_data() -> Iterator[InsertData]:
    """Uses a file because chDB's streaming insert loses errors of views and constraints; reading a file reports
    them.
    """
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("insert", os.MFD_CLOEXEC), "wb") as file:
            yield InsertData(file, f"/proc/self/fd/{file.fileno()}")
    else:  # macOS has no anonymous files in memory.
        with tempfile.NamedTemporaryFile(prefix="insert-") as named:
            yield InsertData(named.file, named.name)
