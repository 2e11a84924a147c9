"""A host's clock that can be set: for the processes of one `manage.py serve`, and not for the stores beside it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


class Clock:
    def __init__(self, file: Path) -> None:
        self.file = file
        self.set(0.0)

    @property
    def environment(self) -> Mapping[str, str]:
        return {"PYTHONPATH": str(Path(__file__).parent), "CLOCK_OFFSET_FILE": str(self.file)}

    def set(self, offset: float) -> None:
        """Takes effect at once. The file is replaced atomically, so no process reads half a number."""
        written = self.file.with_suffix(".new")
        written.write_text(f"{offset}", encoding="ascii")
        os.replace(written, self.file)
