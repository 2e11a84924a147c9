"""Migrations after those of the product, made for tests: one of each kind that the product may need."""

from __future__ import annotations

import shutil
from pathlib import Path

from analytics.clickhouse import migrator

_FOLDER = Path(__file__).parent


def copy_to(folder: Path, more: int = 0) -> Path:
    """Returns `folder` with the product's migrations, these, and `more` that copy figures to other granularities."""
    folder.mkdir()
    for path in (*migrator.MIGRATIONS.glob("[0-9]*.sql"), *_FOLDER.glob("[0-9]*.sql")):
        shutil.copy(path, folder)
    again = (_FOLDER / "9037_granules_of_figures.sql").read_text(encoding="utf-8")
    for number in range(more):
        text = again.replace("index_granularity = 512", f"index_granularity = {1000 + number}")
        (folder / f"{9040 + number}_granules_{number}.sql").write_text(text, encoding="utf-8")
    return folder
