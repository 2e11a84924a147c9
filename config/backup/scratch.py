"""Temporary folders below VAR_DIR: a backup may be larger than the machine's /tmp."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings


@contextmanager
def scratch_folder() -> Iterator[Path]:
    settings.VAR_DIR.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="backup-", dir=settings.VAR_DIR) as folder:
        yield Path(folder)
