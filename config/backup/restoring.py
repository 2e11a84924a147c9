"""Restores a backup into empty stores.

All checks run before anything changes. The rows of the configuration are one transaction, in which the request log is
restored too: if either fails, neither stays. Then the tables are migrated to this version, and later deletions are
applied again. Until then the canary keeps every process from serving.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID

from django.apps import apps
from django.apps.registry import Apps
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.color import no_style
from django.db import DatabaseError, connection, transaction

from analytics.clickhouse import backup as store
from analytics.clickhouse.migrator import migrate as migrate_analytics
from analytics.deletion.again import Tombstone, erase_again, tombstones, withdraw_copies
from analytics.models import Deletion
from analytics.reconciliation.services import reconcile
from config.backup import manifest as manifests
from config.backup import request_log, schema
from config.backup.engine import request_log_running
from config.backup.errors import BackupError
from config.backup.making import whole_backups
from config.backup.manifest import StoredFile
from config.backup.progress import Steps
from config.backup.scratch import scratch_folder
from config.backup.tables import column_values, empty_tables, file_of, models_of, read_table
from core.encryption.canary import WrongKeysError, check_token, hold_back, release
from core.models import EncryptionCanary, Project
from core.storage import Place

# Scores that changed this long before the backup began are copied to the request log again.
_COPIES_BEHIND = timedelta(hours=1)
# Records that were stored while the backup was made are of the days around it.
_RECONCILED_DAYS = 4
_CLOSED_AFTER = timedelta(days=2)


class Restore:
    """Restores the backup `name` in `place`. Methods raise BackupError and StorageError."""

    def __init__(self, place: Place, name: str, steps: Steps, *, log: bool) -> None:
        self._place, self._folder, self._steps = place, place.within(name), steps
        text = self._folder.read(manifests.NAME)
        if text is None:
            raise BackupError(f"{self._folder.address}: there is no {manifests.NAME}: it is torn, or no backup.")
        self.manifest = manifests.read_manifest(text, self._folder.address)
        self._log = self.manifest.request_log if log else None
        self._canary = ""

    def run(self) -> None:
        schema.check_versions(self.manifest, self._folder.address)
        _require_empty_database()
        with ExitStack() as stack:
            scratch = stack.enter_context(scratch_folder())
            files = self._fetch(self.manifest.files, scratch)
            archive = self._fetch_log(scratch)
            self._check_keys(files)
            erased = self._erased_since(scratch)
            if self._log:
                stack.enter_context(request_log_running())
                _require_empty_log()
            try:
                self._load(files, archive)
                self._complete(erased)
            except KeyboardInterrupt:
                raise BackupError(self._interrupted()) from None

    def _fetch(self, stored: Iterable[StoredFile], scratch: Path) -> dict[str, Path]:
        expected = list(stored)
        found = {}
        for file in expected:
            found[file.name] = self._folder.fetch(file.name, scratch)
            manifests.check_file(found[file.name], file, self._folder.address)
        self._steps.write(f"checked: {len(expected)} files, {sum(file.bytes for file in expected):,} bytes")
        return found

    def _fetch_log(self, scratch: Path) -> Path | None:
        if self._log is None:
            return None
        request_log.check_way(self._folder)
        if self._log.archive is not None:
            return self._fetch([self._log.archive], scratch)[self._log.archive.name]
        if self._folder.sizes(request_log.OBJECTS) != self._log.objects:
            raise BackupError(f"{self._folder.address}: objects of the request log are missing or have other sizes.")
        return None

    def _check_keys(self, files: dict[str, Path]) -> None:
        name = file_of(EncryptionCanary)
        if name not in files:
            raise BackupError(f"{self._folder.address}: {manifests.NAME} lacks {name}.")
        for (token,) in column_values(files[name], name, "token"):
            try:
                check_token(token)
            except WrongKeysError:
                raise BackupError(
                    "ENCRYPTION_KEYS has none of the keys that the backup's secrets are encrypted with: give this host"
                    " the ENCRYPTION_KEYS of that installation (VAR_DIR/secrets/encryption_keys), or restore a backup"
                    " made with --without-secrets."
                ) from None

    def _erased_since(self, scratch: Path) -> list[Tombstone]:
        found = []
        name = file_of(Deletion)
        for other, manifest in whole_backups(self._place).items():
            for entry in manifest.files if other != self.manifest.name else ():
                if entry.name == name:
                    folder = self._place.within(other)
                    file = folder.fetch(name, scratch / other)
                    manifests.check_file(file, entry, folder.address)
                    found += _tombstones_in(file, name)
        return found

    def _load(self, files: dict[str, Path], archive: Path | None) -> None:
        former = schema.make_tables(self.manifest)
        try:
            with transaction.atomic():
                _require_empty_database()
                self._load_rows(former, files)
                self._canary = hold_back()
                if self._log:
                    request_log.load(self._folder, self._log, archive, self._steps)
        except KeyboardInterrupt:
            if self._log:
                store.drop_tables()
            raise
        except DatabaseError as error:
            if self._log:
                store.drop_tables()
            raise BackupError(f"The SQL database took the rows, but not all together: {error}".rstrip()) from error

    def _load_rows(self, former: Apps, files: dict[str, Path]) -> None:
        models = models_of(former)
        # Migrations make rows, such as content types, which the backup has with its own ids.
        empty_tables(models, using="default")
        rows = 0
        with self._steps.rows("configuration", self.manifest.rows) as count:
            for model in models:
                if (file := files.get(file_of(model))) is not None:
                    rows += read_table(model, file, using="default", count=count)
        if unknown := set(files) - {file_of(model) for model in models}:
            raise BackupError(f"{self._folder.address}: {min(unknown)} is no table of that version.")
        connection.check_constraints()
        with connection.cursor() as cursor:
            for statement in connection.ops.sequence_reset_sql(no_style(), models):
                cursor.execute(statement)
        self._steps.write(f"configuration: {rows:,} rows of {len(files)} tables")

    def _complete(self, erased: list[Tombstone]) -> None:
        try:
            self._finish(erased)
            release(self._canary)
        except BaseException:
            # What was deleted must not be there again, so that a restore is whole or none.
            self._undo()
            raise

    def _interrupted(self) -> str:
        if self._log is None or store.is_empty():
            return "Interrupted: both stores are without rows, as before. `manage.py restore` may be run again."
        return (
            f"Interrupted twice: the database {store.database()} of the analytics store still has rows. Drop its tables"
            " (of the embedded engine: delete VAR_DIR/clickhouse), then run `manage.py restore` again."
        )

    def _finish(self, erased: list[Tombstone]) -> None:
        call_command("migrate", interactive=False, verbosity=0)
        if self._log:
            migrate_analytics()
        known = {one.id: one for one in [*erased, *tombstones()]}
        with self._steps.rows("deletions", len(known)) as count:
            again = erase_again(known.values(), log=self._log is not None, done=count)
        self._steps.write(f"deletions: {len(known)}, {again} requests made anonymous again")
        if self._log is None:
            return
        withdraw_copies(self.manifest.began_at - _COPIES_BEHIND)
        report = reconcile(days=_RECONCILED_DAYS, now=self.manifest.finished_at + _CLOSED_AFTER)
        self._steps.write(f"figures: {len(report.differences)} corrected, {report.remaining} still differ")

    def _undo(self) -> None:
        with transaction.atomic():
            empty_tables(models_of(apps), using="default")
        if self._log:
            store.drop_tables()


def newest(place: Place) -> str:
    whole = whole_backups(place)
    with_log = [name for name, manifest in whole.items() if manifest.request_log]
    if not whole:
        raise BackupError(f"{place.address}: there is no backup.")
    return max(with_log or whole)


def _require_empty_database() -> None:
    present = set(connection.introspection.table_names())
    for model in (Project, get_user_model()):
        if model._meta.db_table in present and model._base_manager.exists():
            raise BackupError(
                f"The SQL database is in use: {model._meta.db_table} has rows. Restore into an empty one, before the"
                " first `manage.py serve`."
            )


def _require_empty_log() -> None:
    if not store.is_empty():
        raise BackupError(
            f"The analytics store is in use: the database {store.database()} has rows. Restore into an empty one."
        )


def _tombstones_in(file: Path, name: str) -> list[Tombstone]:
    names = ("id", "project_id", "kind", "subject_hash", "requested_by", "requested_at")
    return [
        Tombstone(UUID(identifier), UUID(project_id), kind, hashed, actor, datetime.fromisoformat(asked_at))
        for identifier, project_id, kind, hashed, actor, asked_at in column_values(file, name, *names)
    ]
