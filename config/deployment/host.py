"""The disk of this host."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

from django.conf import settings

from config.deployment.problem import Problem

_LITTLE_DISK, _NO_DISK = 2 << 30, 256 << 20


def check() -> Iterator[Problem]:
    if not os.access(settings.VAR_DIR, os.W_OK):
        yield Problem("disk", f"VAR_DIR {settings.VAR_DIR} cannot be written.")
        return
    free = shutil.disk_usage(settings.VAR_DIR).free
    if free < _LITTLE_DISK:
        message = f"VAR_DIR {settings.VAR_DIR} has {free >> 20} MiB left."
        yield Problem("disk", message, is_fatal=free < _NO_DISK)
