"""A small file system that a test can fill: a tmpfs, mounted as root or in a user namespace."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_BLOCK = 1 << 20


class SmallDisk:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._ballast = path / "ballast"

    def fill(self) -> None:
        with self._ballast.open("ab", buffering=0) as file:
            size = _BLOCK
            while size:
                try:
                    written = file.write(bytes(size))
                except OSError:
                    written = 0
                size = size if written == size else size // 2

    def free(self) -> None:
        self._ballast.unlink(missing_ok=True)


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[SmallDisk]:
    """Mounts a file system of `size` bytes at `folder`. Fails if neither root nor user namespaces may mount one."""
    folder.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", str(folder)]
    if os.geteuid() == 0:
        subprocess.run(mount, check=True, capture_output=True)
        try:
            yield SmallDisk(folder)
        finally:
            # A lazy unmount does not wait for files that are still open.
            subprocess.run(["umount", "-l", str(folder)], check=True, capture_output=True)
        return
    # The namespace lives as long as a process in it, through whose root other processes reach the mount.
    script = '"$@" && echo mounted && read line'
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", *mount]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as keeper:
        assert keeper.stdin is not None
        assert keeper.stdout is not None
        if keeper.stdout.readline() != b"mounted\n":
            raise RuntimeError(
                "This test needs a small file system: run it as root or where user namespaces are allowed."
            )
        yield SmallDisk(Path(f"/proc/{keeper.pid}/root{folder}"))
        keeper.stdin.close()
