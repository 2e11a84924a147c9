"""Backs up the request log first, then the configuration.

In this order a deletion between the two is in the configuration, and is applied again to the restored log. The
configuration is read in one snapshot transaction, which blocks nobody.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from django.apps import apps
from django.db import connections, transaction

from config.backup import manifest as manifests
from config.backup import request_log, schema
from config.backup.engine import request_log_running
from config.backup.errors import BackupError
from config.backup.manifest import Manifest, RequestLog, StoredFile
from config.backup.progress import Steps
from config.backup.scratch import scratch_folder
from config.backup.tables import file_of, models_of, write_table
from config.version import VERSION
from core.storage import Place

_ALIAS = "backup"
NAME_FORMAT = "%Y%m%dT%H%M%SZ"


def make_backup(place: Place, steps: Steps, *, secrets: bool, log: bool) -> Manifest:
    """Makes a backup in a new folder of `place`.

    Raises BackupError, StorageError and the errors of the stores; what was written until then has no manifest.
    """
    began_at = datetime.now(UTC)
    name = began_at.strftime(NAME_FORMAT)
    if name in place.folders():
        raise BackupError(f"{place.address} has a backup {name} already: another one was begun in this second.")
    folder = place.within(name)
    migrations = schema.present_migrations()
    saved = _save_log(folder, steps) if log else None
    files = _save_configuration(folder, steps, secrets=secrets)
    manifest = Manifest(
        name=name,
        version=VERSION,
        began_at=began_at,
        finished_at=datetime.now(UTC),
        database=connections["default"].vendor,
        migrations=migrations,
        secrets=secrets,
        files=files,
        request_log=saved,
    )
    with scratch_folder() as scratch:
        file = scratch / manifests.NAME
        file.write_bytes(manifests.to_json(manifest))
        folder.put(file, manifests.NAME)
    return manifest


def remove_old(place: Place, keep: int, *, log: bool) -> list[str]:
    old = sorted(name for name, one in whole_backups(place).items() if (one.request_log is not None) == log)[:-keep]
    for name in old:
        place.remove(name)
    return old


def whole_backups(place: Place) -> dict[str, Manifest]:
    found = {}
    for name in place.folders():
        folder = place.within(name)
        if (text := folder.read(manifests.NAME)) is not None:
            found[name] = manifests.read_manifest(text, folder.address)
    return found


def _save_log(folder: Place, steps: Steps) -> RequestLog:
    request_log.check_way(folder)
    with request_log_running():
        saved = request_log.save(folder, steps)
    size = saved.archive.bytes if saved.archive else sum(saved.objects.values())
    steps.write(f"request log: {size:,} bytes of ClickHouse {saved.clickhouse}")
    return saved


def _save_configuration(folder: Place, steps: Steps, *, secrets: bool) -> list[StoredFile]:
    files = []
    with _snapshot(), scratch_folder() as scratch, steps.rows("configuration") as count:
        for model in models_of(apps):
            name = file_of(model)
            file = scratch / Path(name).name
            rows = write_table(model, file, using=_ALIAS, secrets=secrets, count=count)
            files.append(manifests.describe(file, name, rows))
            folder.put(file, name)
    steps.write(f"configuration: {sum(file.rows for file in files):,} rows of {len(files)} tables")
    return files


@contextmanager
def _snapshot() -> Iterator[None]:
    own = connections["default"].copy(_ALIAS)
    # SQLite's other transactions here take the write lock when they begin.
    if own.vendor == "sqlite":
        own.settings_dict["OPTIONS"] = {**own.settings_dict["OPTIONS"], "transaction_mode": "DEFERRED"}
    connections[_ALIAS] = own
    try:
        with transaction.atomic(using=_ALIAS):
            if own.vendor == "postgresql":
                with own.cursor() as cursor:
                    cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield
    finally:
        own.close()
        del connections[_ALIAS]
