from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone
from pytest_django import DjangoDbBlocker

from core.processes.schema import load_snapshot
from tests.core import snapshots

pytestmark = pytest.mark.usefixtures("unblocked")


@pytest.fixture
def unblocked(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    with django_db_blocker.unblock():
        yield


@pytest.fixture(params=["sqlite", "postgresql"])
def vendor(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def _empty(vendor: str, folder: Path) -> AbstractContextManager[BaseDatabaseWrapper]:
    ContentType.objects.clear_cache()
    name = f"empty_{os.urandom(6).hex()}"
    if vendor == "sqlite":
        return snapshots.sqlite(folder / name)
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
    return snapshots.postgresql(connection.settings_dict["HOST"], name)


def test_migrate__empty_database__is_as_the_migrations_make_it(vendor: str, tmp_path: Path) -> None:
    snapshot = (snapshots.FOLDER / f"{vendor}.sql").read_text(encoding="utf-8")
    with _empty(vendor, tmp_path) as migrated:
        assert snapshots.made_by_migrations(migrated) == snapshot, "run `python -m tests.core.snapshots`"
        expected = snapshots.dump(migrated), _sequences(migrated)
    began = timezone.now()
    with _empty(vendor, tmp_path) as loaded:
        call_command("migrate", database=loaded.alias, verbosity=0)

        assert (snapshots.dump(loaded), _sequences(loaded)) == expected
        applied = MigrationRecorder(loaded).applied_migrations().values()
        assert all(one.applied >= began.replace(microsecond=0) for one in applied)


def test_load__code_has_a_migration_that_the_snapshot_lacks__changes_nothing(
    vendor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = MigrationLoader.load_disk

    def load_more(self: MigrationLoader) -> None:
        load(self)
        self.disk_migrations["core", "9999_later"] = self.disk_migrations["core", "0001_initial"]

    with _empty(vendor, tmp_path) as empty:
        monkeypatch.setattr(MigrationLoader, "load_disk", load_more)
        assert not load_snapshot(empty)
        assert empty.introspection.table_names() == []


def test_load__database_has_a_table__changes_nothing(vendor: str, tmp_path: Path) -> None:
    with _empty(vendor, tmp_path) as used:
        with used.cursor() as cursor:
            cursor.execute("CREATE TABLE theirs (id integer)")
        assert not load_snapshot(used)
        assert used.introspection.table_names() == ["theirs"]


def _sequences(database: BaseDatabaseWrapper) -> set[tuple[str, int]]:
    """Returns what the dump lacks: PostgreSQL's has them, SQLite's has not. Zero is as none."""
    if database.vendor == "postgresql":
        return set()
    with database.cursor() as cursor:
        cursor.execute("SELECT name, seq FROM sqlite_sequence WHERE seq > 0")
        return set(cursor.fetchall())
