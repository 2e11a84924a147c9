"""Migrations after those of the product, made for tests: one of each kind that the product may need."""

from __future__ import annotations

import shutil
from pathlib import Path

from analytics.clickhouse import migrator
from analytics.clickhouse.log_columns import LogColumn

_FOLDER = Path(__file__).parent
# A column as a declaration would have it; a process that is started with the folder of migrations has no declaration.
REGION = LogColumn(9039, "region", "LowCardinality(String)", is_kept=True)


def texts() -> dict[str, str]:
    """Returns the migrations by the names of their files."""
    found = {path.name: path.read_text(encoding="utf-8") for path in sorted(_FOLDER.glob("[0-9]*.sql"))}
    written = [one.text for one in migrator.written_migrations()]
    return {**found, "9039_log_column.sql": REGION.migration([*written, *found.values()])}


def copy_to(folder: Path, more: int = 0) -> Path:
    """Returns `folder` with the product's migrations, these, and `more` that copy figures to other granularities."""
    folder.mkdir()
    for path in migrator.MIGRATIONS.glob("[0-9]*.sql"):
        shutil.copy(path, folder)
    made = texts()
    for name, text in made.items():
        (folder / name).write_text(text, encoding="utf-8")
    again = made["9037_granules_of_figures.sql"]
    for number in range(more):
        text = again.replace("index_granularity = 512", f"index_granularity = {1000 + number}")
        (folder / f"{9040 + number}_granules_{number}.sql").write_text(text, encoding="utf-8")
    return folder
