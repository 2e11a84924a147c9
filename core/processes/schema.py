from __future__ import annotations

from pathlib import Path

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

_SNAPSHOTS = Path(__file__).parents[1] / "schema"


def import_migrations() -> None:
    MigrationLoader(None)


def missing_migrations(using: str = "default") -> list[str]:
    """Returns the migrations to apply as `app.name`, in order; ignores unknown ones of a newer version.

    Writes nothing. Raises django.db.Error if the database does not answer.
    """
    executor = MigrationExecutor(connections[using])
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [f"{migration.app_label}.{migration.name}" for migration, _ in plan]


def load_snapshot(connection: BaseDatabaseWrapper) -> bool:
    """Gives an empty database what all migrations would make of it, for a hundredth of their work.

    Returns False and changes nothing if there are tables, or if the snapshot is not of exactly this code's migrations.
    """
    if connection.introspection.table_names():
        return False
    snapshot = (_SNAPSHOTS / f"{connection.vendor}.sql").read_text(encoding="utf-8")
    code = MigrationLoader(None, load=False)
    code.load_disk()
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        # SQLite takes one statement at a time.
        for statement in snapshot.split(";\n") if connection.vendor == "sqlite" else [snapshot]:
            cursor.execute(statement)
        is_of_code = MigrationRecorder(connection).applied_migrations().keys() == code.disk_migrations.keys()
        transaction.set_rollback(not is_of_code, using=connection.alias)
    return is_of_code
