"""A read-only root file system for a service, as containers have it: only one folder, `/tmp` and `/dev/shm` are
writable.

`READ_ONLY_ROOT=1` runs every service of this folder so, as `make test` does where the machine permits it.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

ASKED = "READ_ONLY_ROOT"

# Its arguments are the folder and the command; in a mount namespace of its own, of which other processes see nothing.
_SCRIPT = """
folder=$1; shift
mount --bind "$folder" "$folder"
mountpoint -q /tmp || mount --bind /tmp /tmp
mount -o remount,bind,ro /
mount --bind "$PWD" "$PWD"
mount -o remount,bind,ro "$PWD"
cd "$PWD"
exec "$@"
"""


def on_read_only_root(folder: Path, command: Sequence[str]) -> list[str]:
    """Returns a command that runs `command`, with the same process id, so that it can write to `folder` alone.

    The folder is made. The command needs root, or user namespaces whose root may mount.
    """
    folder.mkdir(parents=True, exist_ok=True)
    namespaces = ["--mount"] if os.geteuid() == 0 else ["--user", "--map-root-user", "--mount"]
    return ["unshare", *namespaces, "sh", "-ec", _SCRIPT, "sh", str(folder), *command]


def as_asked(folder: Path, command: Sequence[str]) -> list[str]:
    # A disk that a test has mounted in another namespace can only be reached, not mounted again.
    is_asked = os.environ.get(ASKED) == "1" and not folder.is_relative_to("/proc")
    return on_read_only_root(folder, command) if is_asked else list(command)


@cache
def refusal() -> str:
    """Returns why this machine does not permit a process's own read-only root; empty if it does."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            tried = subprocess.run(on_read_only_root(Path(folder), ["true"]), capture_output=True, text=True)
        except FileNotFoundError as error:
            return f"{error.filename} is missing"
    return "" if tried.returncode == 0 else " ".join(tried.stderr.split()) or f"exit {tried.returncode}"
