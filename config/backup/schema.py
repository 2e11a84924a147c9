from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from django.apps.registry import Apps
from django.db import connections
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from analytics.clickhouse.migrator import load_migrations
from config.backup.errors import BackupError
from config.backup.manifest import Manifest
from core.processes.locks import installation_lock
from core.processes.schema import missing_migrations

Node = tuple[str, str]


def present_migrations() -> dict[str, list[str]]:
    if missing := missing_migrations():
        raise BackupError(f"The SQL database lacks migrations, the first is {missing[0]}: run `manage.py migrate_all`.")
    loader = MigrationLoader(connections["default"])
    applied = _applied()
    if unknown := sorted(node for node in applied if node[0] in loader.migrated_apps and not _knows(loader, node)):
        raise BackupError(
            f"The SQL database is of a later version ({'.'.join(unknown[0])}): back up with that version."
        )
    found = defaultdict(list)
    for app, name in sorted(applied & set(loader.graph.nodes)):
        found[app].append(name)
    return dict(found)


def check_versions(manifest: Manifest, address: str) -> None:
    """Raises BackupError for a backup whose tables this version does not know."""
    loader = MigrationLoader(None)
    later = [f"{app}.{name}" for app, name in sorted(_nodes(manifest)) if not _knows(loader, (app, name))]
    known = {migration.number for migration in load_migrations()}
    log = manifest.request_log
    later += [f"analytics migration {number}" for number in (log.migrations if log else []) if number not in known]
    if later:
        raise BackupError(
            f"{address}: the backup is of a later version, {manifest.version} (this one does not know {later[0]}):"
            " restore it with that version."
        )


def check_ledger(numbers: Collection[int]) -> None:
    """Raises BackupError if a request log with these migrations lacks some of this version."""
    if missing := [one.name for one in load_migrations() if one.number not in numbers]:
        raise BackupError(
            f"The analytics store lacks migrations, the first is {missing[0]}: run `manage.py migrate_all`."
        )


def make_tables(manifest: Manifest) -> Apps:
    """Migrates an empty SQL database to the backup's migrations, and returns the models of that state.

    Raises BackupError if the database is further already.
    """
    with installation_lock("migrate"):
        executor = MigrationExecutor(connections["default"])
        nodes = _nodes(manifest)
        if further := sorted(_applied() & set(executor.loader.graph.nodes) - nodes):
            raise BackupError(
                f"The database has tables of a later version than the backup ({'.'.join(further[0])}): restore into a"
                " database without tables."
            )
        targets = _last(executor.loader, nodes)
        executor.migrate(targets)
        return MigrationExecutor(connections["default"]).loader.project_state(targets).apps


def _applied() -> set[Node]:
    return set(MigrationRecorder(connections["default"]).applied_migrations())


def _nodes(manifest: Manifest) -> set[Node]:
    return {(app, name) for app, names in manifest.migrations.items() for name in names}


def _knows(loader: MigrationLoader, node: Node) -> bool:
    return node in loader.disk_migrations or any(node in one.replaces for one in loader.disk_migrations.values())


def _last(loader: MigrationLoader, nodes: Iterable[Node]) -> list[Node]:
    chosen = set(nodes)
    children = loader.graph.node_map
    return sorted(node for node in chosen if not any(child.key in chosen for child in children[node].children))
