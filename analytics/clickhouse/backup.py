"""ClickHouse's own BACKUP and RESTORE of the analytics database (https://clickhouse.com/docs/operations/backup).

A backup goes to the disk `backups`, which a server need not have, or from a server straight to object storage. The
store runs both statements in the background; `system.backups` shows their progress.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from analytics.clickhouse import client
from analytics.clickhouse.address import resolve_url
from analytics.errors import AnalyticsQueryError

_LOOK_EVERY_SECONDS = 0.1
# The store lists a backup in the moment in which it begins it.
_UNSEEN_AT_MOST = 50
_DONE = {"BACKUP_CREATED", "RESTORED"}
_FAILED = {"BACKUP_FAILED", "RESTORE_FAILED", "BACKUP_CANCELLED", "RESTORE_CANCELLED"}
# The leases of migrators say who migrates this store, and nothing about another one.
_LEFT_OUT = "SELECT name FROM system.tables WHERE database = currentDatabase() AND startsWith(name, 'migration_lease_')"
# Restored parts keep the numbers of their last mutations, while the table counts its own from the beginning: until it
# has passed them, it takes each DELETE for done and leaves the rows. It counts anew when it is attached. (Seen on 26.9;
# replicated tables have their numbers from Keeper.)
_WITH_PARTS = """
SELECT name FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%MergeTree'
    AND engine NOT LIKE 'Replicated%' ORDER BY name
"""
_TABLES = """
SELECT name, engine LIKE '%View' AS is_view, total_rows FROM system.tables WHERE database = currentDatabase()
ORDER BY is_view DESC, name
"""
_PROGRESS = """
SELECT toString(status) AS status, error, num_files AS files, greatest(total_size, bytes_read) AS bytes
FROM system.backups WHERE id = {id:String}
"""


class BackupFailedError(Exception):
    pass


@dataclass(frozen=True)
class Progress:
    status: str
    error: str
    files: int
    bytes: int


def database() -> str:
    return urlsplit(resolve_url()).path.strip("/")


def version() -> str:
    [(text,)] = client.execute("SELECT version()")
    return str(text)


def applied_migrations() -> list[int]:
    if "schema_migrations" not in _tables():
        return []
    return sorted(number for (number,) in client.execute("SELECT DISTINCT number FROM schema_migrations"))


def on_disk(name: str) -> str:
    return f"Disk('backups', {_quoted(name)})"


def in_bucket(url: str, *credentials: str) -> str:
    return f"S3({', '.join(map(_quoted, (url, *credentials)))})"


def back_up(place: str, *, collected: Callable[[], None], show: Callable[[Progress], None]) -> None:
    """Returns when the backup is complete. `collected` is called as soon as the store has fixed which parts belong to
    it: later writes and deletions do not change the backup.

    Raises BackupFailedError and the errors of the store.
    """
    name = database()
    leases = ", ".join(f"{name}.{table}" for (table,) in client.execute(_LEFT_OUT))
    left_out = f" EXCEPT TABLES {leases}" if leases else ""
    _run(f"BACKUP DATABASE {name}{left_out} TO {place} ASYNC", show, collected)


def restore(place: str, former_database: str, *, show: Callable[[Progress], None]) -> None:
    """Creates and fills the tables of a backup, none of which may exist yet.

    Raises BackupFailedError and the errors of the store.
    """
    if not re.fullmatch(r"\w+", former_database):
        raise BackupFailedError("the backup names a database that is no plain name")
    _run(f"RESTORE DATABASE {former_database} AS {database()} FROM {place} ASYNC", show)
    for (table,) in client.execute(_WITH_PARTS):
        try:
            client.execute(f"DETACH TABLE {table} SYNC")
        finally:
            # Nothing drops a table that is detached, and nothing can be restored in its place.
            client.execute(f"ATTACH TABLE IF NOT EXISTS {table}")


def is_empty() -> bool:
    """The ledger of migrations does not count."""
    return not any(rows for name, (_, rows) in _tables().items() if name != "schema_migrations")


def drop_tables() -> None:
    """Drops the views first, since they name the tables."""
    for name, (is_view, _) in _tables().items():
        client.execute(f"DROP {'VIEW' if is_view else 'TABLE'} IF EXISTS {name} SYNC")


def _tables() -> dict[str, tuple[bool, int]]:
    return {name: (bool(is_view), rows or 0) for name, is_view, rows in client.execute(_TABLES)}


def _run(statement: str, show: Callable[[Progress], None], collected: Callable[[], None] | None = None) -> None:
    try:
        [(identifier, _)] = client.execute(statement)
    except AnalyticsQueryError as error:
        raise BackupFailedError(_reason(error.reason)) from error
    try:
        for progress in _until_ended(identifier):
            if progress.status in _FAILED:
                raise BackupFailedError(_reason(progress.error))
            if collected is not None and (progress.files or progress.status in _DONE):
                collected()
                collected = None
            show(progress)
    except KeyboardInterrupt:
        _cancel(identifier)
        raise


def _until_ended(identifier: str) -> Iterator[Progress]:
    unseen = 0
    while True:
        found = client.query(_PROGRESS, {"id": identifier}, row=Progress, name="backup.progress")
        unseen += not found
        if unseen > _UNSEEN_AT_MOST:
            raise BackupFailedError("the store does not list the backup that it has begun (system.backups)")
        yield from found
        if any(progress.status in _DONE | _FAILED for progress in found):
            return
        time.sleep(_LOOK_EVERY_SECONDS)


def _cancel(identifier: str) -> None:
    """A backup or restore would go on without this process. Returns when the store has stopped it."""
    for (query,) in client.execute("SELECT query_id FROM system.backups WHERE id = {id:String}", {"id": identifier}):
        client.execute("KILL QUERY WHERE query_id = {query:String} ASYNC", {"query": query})
    for _ in _until_ended(identifier):
        pass


def _reason(text: str) -> str:
    sentence = re.split(r", Stack trace|\. \([A-Z_0-9]+\)|: While ", text, maxsplit=1)[0]
    return re.sub(r"^Code: \d+\. DB::Exception: ", "", sentence).strip().rstrip(".")


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
