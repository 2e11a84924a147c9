from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path


def sql_dump(var_dir: Path) -> str:
    """Returns the rows of a service's SQLite database as statements; empty without one."""
    file = var_dir / "db.sqlite3"
    if not file.exists():
        return ""
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        return "\n".join(connection.iterdump())
