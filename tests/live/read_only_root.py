"""A read-only root file system for a service, as containers have it: what may be written is one folder, `/tmp` and
`/dev/shm`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

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
    """Returns the command that runs another one, with the same process id, so that it can write to `folder` alone.

    The folder is made. The command needs root, or user namespaces whose root may mount.
    """
    folder.mkdir(parents=True, exist_ok=True)
    namespaces = ["--mount"] if os.geteuid() == 0 else ["--user", "--map-root-user", "--mount"]
    return ["unshare", *namespaces, "sh", "-ec", _SCRIPT, "sh", str(folder), *command]
