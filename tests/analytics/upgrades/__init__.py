"""Migrations after the schema, made for tests: one of each kind that the product may need."""

from __future__ import annotations

import shutil
from pathlib import Path

_FOLDER = Path(__file__).parent


def copy_to(folder: Path, more: int = 0) -> Path:
    """Returns `folder` with these migrations, and with `more` that copy the figures to other granularities."""
    folder.mkdir()
    for path in _FOLDER.glob("[0-9]*.sql"):
        shutil.copy(path, folder)
    again = (_FOLDER / "0037_granules_of_figures.sql").read_text(encoding="utf-8")
    for number in range(more):
        text = again.replace("index_granularity = 512", f"index_granularity = {1000 + number}")
        (folder / f"{40 + number:04}_granules_{number}.sql").write_text(text, encoding="utf-8")
    return folder
