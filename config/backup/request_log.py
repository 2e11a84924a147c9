"""The request log's part of a backup: ClickHouse's archive on its disk `backups`, or its objects in a bucket."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import msgspec
from django.conf import settings

from analytics.clickhouse import backup as store
from analytics.clickhouse.topology.mode import mode
from analytics.errors import AnalyticsUnavailableError, RepairBusyError
from analytics.reconciliation.leases import repair_lease
from config.backup import schema
from config.backup.errors import BackupError
from config.backup.manifest import RequestLog, describe
from config.backup.progress import Steps
from core.models import Project
from core.storage import Bucket, Place

ARCHIVE = "request_log.tar"
OBJECTS = "request_log"
_LEASE_SECONDS = 600.0
_RENEW_EVERY_SECONDS = 60.0


def check_way(place: Place) -> None:
    """Raises BackupError if ClickHouse can write neither to a disk that this host sees nor to the place itself, and for
    several servers, whose parts of the log are not in one backup."""
    if not mode().is_single:
        raise BackupError(
            f"CLICKHOUSE_MODE={settings.CLICKHOUSE_MODE}: this command backs the request log of one server up; use"
            " --without-log here, and ClickHouse's own BACKUP … ON CLUSTER for the request log."
        )
    if settings.CLICKHOUSE_BACKUP_DIR is None and not isinstance(place, Bucket):
        raise BackupError(
            "The ClickHouse server cannot write to this folder: give s3://bucket/prefix, or name the folder of its disk"
            " `backups` in CLICKHOUSE_BACKUP_DIR, or use --without-log."
        )


def save(place: Place, steps: Steps) -> RequestLog:
    migrations = store.applied_migrations()
    schema.check_ledger(migrations)
    log = RequestLog(store.database(), store.version(), migrations)
    if settings.CLICKHOUSE_BACKUP_DIR is None:
        _back_up(_in_bucket(place), steps)
        log = msgspec.structs.replace(log, objects=place.sizes(OBJECTS))
    else:
        with _on_disk(settings.CLICKHOUSE_BACKUP_DIR) as (name, file):
            _back_up(store.on_disk(name), steps)
            log = msgspec.structs.replace(log, archive=describe(file, ARCHIVE))
            place.put(file, ARCHIVE)
    if store.applied_migrations() != migrations:
        raise BackupError("The request log was migrated while it was backed up: make the backup again.")
    return log


def load(place: Place, log: RequestLog, fetched: Path | None, steps: Steps) -> None:
    """`fetched` is the archive as a local file. Raises BackupError, and then leaves the store unchanged."""
    total = log.archive.bytes if log.archive else sum(log.objects.values())
    store.drop_tables()
    with _source(place, log, fetched) as source, steps.bytes("request log", total) as show:
        try:
            store.restore(source, log.database, show=show)
        except store.BackupFailedError as error:
            store.drop_tables()
            raise BackupError(f"ClickHouse did not restore the request log: {error}.") from error
        except AnalyticsUnavailableError as error:
            with suppress(AnalyticsUnavailableError):
                store.drop_tables()
            raise BackupError(
                "ClickHouse did not answer to the end: empty its database before the next try, if it still has tables."
            ) from error


@contextmanager
def _source(place: Place, log: RequestLog, fetched: Path | None) -> Iterator[str]:
    if settings.CLICKHOUSE_BACKUP_DIR is None:
        yield _in_bucket(place, ARCHIVE if log.archive else OBJECTS)
        return
    with _on_disk(settings.CLICKHOUSE_BACKUP_DIR, ".tar" if log.archive else "") as (name, file):
        if fetched is not None:
            _link(fetched, file)
        for item in log.objects:
            found = place.within(OBJECTS).fetch(item, file)
            if found != file / item:
                _link(found, file / item)
        yield store.on_disk(name)


def _in_bucket(place: Place, name: str = OBJECTS) -> str:
    if not isinstance(place, Bucket):
        raise BackupError(f"{place.address}: a ClickHouse server reads from s3://bucket/prefix, or from its own disk.")
    return store.in_bucket(*place.clickhouse_arguments(name))


def _back_up(target: str, steps: Steps) -> None:
    with _no_repairs() as leases, steps.bytes("request log") as show:

        def shown(progress: store.Progress) -> None:
            leases.renew()
            show(progress)

        try:
            store.back_up(target, collected=leases.end, show=shown)
        except store.BackupFailedError as error:
            raise BackupError(f"ClickHouse did not back the request log up: {error}.") from error


class _Leases:
    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        ids = Project.objects.order_by("pk").values_list("pk", flat=True)
        self._renewals = [stack.enter_context(repair_lease(one, wait_seconds=_LEASE_SECONDS)) for one in ids]
        self._renewed = time.monotonic()

    def renew(self) -> None:
        if time.monotonic() - self._renewed < _RENEW_EVERY_SECONDS:
            return
        for call in self._renewals:
            call()
        self._renewed = time.monotonic()

    def end(self) -> None:
        self._renewals = []
        self._stack.close()


@contextmanager
def _no_repairs() -> Iterator[_Leases]:
    """Holds up deletions and repairs of figures, which move rows between tables: a backup in between would have rows
    twice."""
    with ExitStack() as stack:
        try:
            yield _Leases(stack)
        except RepairBusyError as error:
            raise BackupError("A deletion or a repair of figures does not end: make the backup later.") from error


@contextmanager
def _on_disk(folder: Path, suffix: str = ".tar") -> Iterator[tuple[str, Path]]:
    """Yields a new name on ClickHouse's disk and its path on this host; removes the file afterwards."""
    name = f"{os.getpid()}-{os.urandom(6).hex()}{suffix}"
    file = folder / name
    try:
        yield name, file
    finally:
        if file.is_dir():
            shutil.rmtree(file)
        else:
            file.unlink(missing_ok=True)


def _link(source: Path, target: Path) -> None:
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        target.hardlink_to(source)
    except OSError:  # The folder is on another disk.
        shutil.copyfile(source, target)
