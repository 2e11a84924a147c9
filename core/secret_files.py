from __future__ import annotations

import os
import stat

MAX_BYTES = 64 * 1024


class UnusableFileError(OSError):
    """The file cannot hold a secret; `strerror` says why."""


def read_secret_file(path: str) -> str:
    """Returns the text, stripped. Raises OSError, and UnicodeDecodeError for other bytes.

    Refuses devices and pipes, which may block forever or never end.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UnusableFileError(0, "Is no regular file")
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise UnusableFileError(0, f"Has more than {MAX_BYTES // 1024} KiB")
    return content.decode().strip()
