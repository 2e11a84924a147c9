"""Files that hold a secret: an operator, or a configuration, names their path."""

from __future__ import annotations

import os
import stat

MAX_BYTES = 64 * 1024


class UnusableFileError(OSError):
    """The file is none that holds a secret; `strerror` says why."""


def read_secret_file(path: str) -> str:
    """Returns the text of a file without blanks around it. Raises OSError, and UnicodeDecodeError for other bytes.

    A device or a pipe may never end, and may wait for ever: it is not opened for waiting, and not read.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UnusableFileError(0, "Is no regular file")
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise UnusableFileError(0, f"Has more than {MAX_BYTES // 1024} KiB")
    return content.decode().strip()
