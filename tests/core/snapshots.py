"""`python -m tests.core.snapshots` writes the snapshots of the SQL schema in `core/schema` anew."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import django
from django.core.management import call_command
from django.core.management.commands import migrate
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from tests.services import postgresql_program, start_postgresql

FOLDER = Path(__file__).parents[2] / "core" / "schema"
_ALIAS = "snapshot"
_WRITES_NOTHING = ("SELECT", "SAVEPOINT ", "RELEASE SAVEPOINT ")


@contextmanager
def sqlite(file: Path) -> Iterator[BaseDatabaseWrapper]:
    with _connection({"ENGINE": "django.db.backends.sqlite3", "NAME": str(file)}) as connection:
        yield connection


@contextmanager
def postgresql(host: str, name: str) -> Iterator[BaseDatabaseWrapper]:
    with _connection({"ENGINE": "core.postgresql", "NAME": name, "HOST": host, "USER": "postgres"}) as connection:
        yield connection


@contextmanager
def _connection(settings: dict[str, Any]) -> Iterator[BaseDatabaseWrapper]:
    connections.settings[_ALIAS] = connections.configure_settings({"default": {}, _ALIAS: settings})[_ALIAS]
    connection = connections[_ALIAS]
    try:
        yield connection
    finally:
        connection.close()
        del connections[_ALIAS], connections.settings[_ALIAS]


def made_by_migrations(connection: BaseDatabaseWrapper) -> str:
    """Runs the migrations on an empty database, and returns the SQL that makes the same.

    With SQLite, which makes a table anew for most changes, that is a dump. A dump of PostgreSQL would have the
    conditions of indexes in other words, so that is what the migrations write.
    """
    written: list[str] = []

    def note(execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: dict[str, Any]) -> Any:
        if not str(sql).lstrip().startswith(_WRITES_NOTHING):
            written.append(context["cursor"].mogrify(str(sql), params))
        return execute(sql, params, many, context)

    is_server = connection.vendor == "postgresql"
    with connection.execute_wrapper(note) if is_server else nullcontext():
        call_command(migrate.Command(), database=connection.alias, verbosity=0)
    return _timeless("".join(f"{sql.rstrip(';')};\n" for sql in written)) if is_server else dump(connection)


def dump(connection: BaseDatabaseWrapper) -> str:
    return _timeless(_dump_sqlite(connection) if connection.vendor == "sqlite" else _dump_postgresql(connection))


def _timeless(text: str) -> str:
    """The only times are those of the migrations, which a database has when it is made."""
    return re.sub(r"'\d{4}-\d\d-\d\d [\d:.+-]+'(::timestamptz)?", "CURRENT_TIMESTAMP", text)


def _dump_sqlite(connection: BaseDatabaseWrapper) -> str:
    # The reader has a transaction of its own, and SQLite keeps the numbers of rows itself.
    left_out = re.compile(r"BEGIN TRANSACTION|COMMIT|.* \"sqlite_sequence\"")
    found = [statement for statement in connection.connection.iterdump() if not left_out.match(statement)]
    # A row needs the tables that it refers to.
    found.sort(key=lambda statement: not statement.startswith("CREATE TABLE"))
    return "".join(f"{statement}\n" for statement in found)


def _dump_postgresql(connection: BaseDatabaseWrapper) -> str:
    host, name = connection.settings_dict["HOST"], connection.settings_dict["NAME"]
    words = ["--no-owner", "--inserts", "--restrict-key=0", "-h", host, "-U", "postgres", name]
    return subprocess.run([postgresql_program("pg_dump"), *words], capture_output=True, text=True, check=True).stdout


def _write() -> None:
    with tempfile.TemporaryDirectory(prefix="snapshots-") as folder:
        with sqlite(Path(folder) / "db.sqlite3") as connection:
            _write_one(connection)
        Path(folder).chmod(0o755)
        server, _ = start_postgresql(Path(folder) / "postgresql")
        try:
            with postgresql(str(Path(folder) / "postgresql"), "postgres") as connection:
                _write_one(connection)
        finally:
            server.stop(signal.SIGINT)


def _write_one(connection: BaseDatabaseWrapper) -> None:
    (FOLDER / f"{connection.vendor}.sql").write_text(made_by_migrations(connection), encoding="utf-8")


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.base")
    django.setup()
    _write()
