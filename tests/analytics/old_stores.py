"""Stores of releases before this one, for the tests of upgrades."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from analytics.clickhouse import migrator


def migrate_before(number: int, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Applies the migrations below `number` to an empty store."""
    before = folder / "before"
    before.mkdir()
    for migration in migrator.MIGRATIONS.glob("*.sql"):
        if int(migration.name.partition("_")[0]) < number:
            shutil.copy(migration, before)
    with monkeypatch.context() as patched:
        patched.setattr(migrator, "MIGRATIONS", before)
        migrator.migrate()
