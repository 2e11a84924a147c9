from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

from config import disks
from config.deployment.problem import Problem

_LITTLE_DISK, _NO_DISK = 2 << 30, 256 << 20


def check() -> Iterator[Problem]:
    named = disks.disks()
    for name, folder in disks.folders():
        existing = disks.existing(folder)
        if not existing.is_dir() or not os.access(existing, os.W_OK):
            yield Problem("disk", f"{name} {folder} cannot be written.")
        elif name in named:
            yield from _room(f"{name} {folder}", shutil.disk_usage(existing).free)


def _room(where: str, free: int) -> Iterator[Problem]:
    if free < _LITTLE_DISK:
        yield Problem("disk", f"{where} has {free >> 20} MiB left.", is_fatal=free < _NO_DISK)
