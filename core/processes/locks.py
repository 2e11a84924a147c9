"""Installation locks: one process at a time among all that share a SQL database, for migrations and first steps.

On PostgreSQL: an advisory lock of a transaction, on its own connection. The server releases it however its holder ends,
and it works through transaction poolers. Only the holder has a transaction open, so many waiting hosts leave a small
pool to the one that migrates.

On SQLite, whose users share one machine: a lock on a file beside the database, which the kernel releases.

Neither has a time limit or reads a clock, so a migration may take hours.
"""

from __future__ import annotations

import fcntl
import logging
import os
import socket
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

logger = logging.getLogger("core.locks")

_LOOK_EVERY_SECONDS = 0.2
# The first half of the advisory lock's number is fixed, so that other programs' locks do not collide.
_ADVISORY_CLASS = 0x50474C4B
# A host that lost power closes no connection: the server probes it, and releases the lock within a minute. Behind a
# pooler it is the pooler that has to probe its clients. No server ends the holder's transaction for its age; servers
# before 17 lack one of the settings.
_HOLD = """
SELECT set_config(name, wanted.value, true) FROM (VALUES
    ('application_name', %s),
    ('idle_in_transaction_session_timeout', '0'), ('transaction_timeout', '0'),
    ('tcp_keepalives_idle', '20'), ('tcp_keepalives_interval', '10'), ('tcp_keepalives_count', '3')
) AS wanted (name, value) JOIN pg_settings USING (name)
"""
_HOLDER = """
SELECT activity.application_name FROM pg_locks AS held JOIN pg_stat_activity AS activity USING (pid)
WHERE held.locktype = 'advisory' AND held.granted AND held.classid = %s AND held.objid = %s
    AND held.database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
_NAME_BYTES = 63


def this_process() -> str:
    return f"{socket.gethostname()} process {os.getpid()}"


@contextmanager
def installation_lock(name: str, *, using: str = "default") -> Iterator[None]:
    """Waits until the named lock is free; one log line names its holder.

    Raises django.db.Error if the database does not answer.
    """
    with _lock_of(connections[using], name):
        yield


def _lock_of(connection: BaseDatabaseWrapper, name: str) -> AbstractContextManager[None]:
    if connection.vendor == "postgresql":
        return _advisory_lock(connection, name)
    database = str(connection.settings_dict["NAME"])
    if ":memory:" in database or "mode=memory" in database:
        return nullcontext()  # No other process holds the lock.
    file = Path(database)
    # The file name begins with a dot, because it is not part of the database that operators copy.
    return _file_lock(file.with_name(f".{file.name}.{name}.lock"), name)


@contextmanager
def _advisory_lock(connection: BaseDatabaseWrapper, name: str) -> Iterator[None]:
    number = zlib.crc32(name.encode()) & 0x7FFFFFFF
    own = connection.copy()
    try:
        own.set_autocommit(False)
        with own.cursor() as cursor:

            def taken() -> bool:
                cursor.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", [_ADVISORY_CLASS, number])
                is_taken = bool(cursor.fetchone()[0])
                if is_taken:
                    cursor.execute(_HOLD, [f"prompt-gateway {name} {this_process()}"[:_NAME_BYTES]])
                else:
                    own.rollback()
                return is_taken

            def holder_of() -> str:
                cursor.execute(_HOLDER, [_ADVISORY_CLASS, number])
                row = cursor.fetchone()
                own.rollback()
                return str(row[0]) if row else "a process that has just ended"

            _wait_for(taken, holder_of, name)
            yield
    finally:
        own.close()


@contextmanager
def _file_lock(file: Path, name: str) -> Iterator[None]:
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:

        def taken() -> bool:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

        def holder_of() -> str:
            return os.pread(descriptor, 200, 0).decode("utf-8", "replace").strip() or "unknown"

        _wait_for(taken, holder_of, name)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{this_process()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _wait_for(taken: Callable[[], bool], holder_of: Callable[[], str], name: str) -> None:
    is_logged = False
    while not taken():
        if not is_logged:
            logger.info("lock.waiting name=%s holder=%r", name, holder_of())
            is_logged = True
        time.sleep(_LOOK_EVERY_SECONDS)
    if is_logged:
        logger.info("lock.taken name=%s", name)
