"""The check that the SQL database has the tables that this version of the code needs."""

from __future__ import annotations

from django.db import connections
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader


def import_migrations() -> None:
    """Imports the migrations of all apps, which every process that looks for missing ones has to know. Asks no
    database."""
    MigrationLoader(None)


def missing_migrations(using: str = "default") -> list[str]:
    """Returns the migrations to apply as `app.name`, in order; unknown ones of a newer version are ignored.

    Writes nothing. Raises django.db.Error when the database does not answer.
    """
    executor = MigrationExecutor(connections[using])
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [f"{migration.app_label}.{migration.name}" for migration, _ in plan]
