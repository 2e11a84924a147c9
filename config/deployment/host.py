"""The disks of this host."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings

from config.deployment.problem import Problem

_LITTLE_DISK, _NO_DISK = 2 << 30, 256 << 20


def check() -> Iterator[Problem]:
    disks: set[int] = set()
    for name in ("VAR_DIR", "SPOOL_DIR"):
        folder: Path = getattr(settings, name)
        # `serve` makes those that are missing.
        existing = next(path for path in (folder, *folder.parents) if path.exists())
        disk = existing.stat().st_dev
        if not existing.is_dir() or not os.access(existing, os.W_OK):
            yield Problem("disk", f"{name} {folder} cannot be written.")
        elif disk not in disks:
            disks.add(disk)
            yield from _room(f"{name} {folder}", shutil.disk_usage(existing).free)


def _room(where: str, free: int) -> Iterator[Problem]:
    if free < _LITTLE_DISK:
        yield Problem("disk", f"{where} has {free >> 20} MiB left.", is_fatal=free < _NO_DISK)
