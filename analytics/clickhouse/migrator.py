"""Brings the tables of the analytics store up to this version of the code.

A migration is `migrations/<number>_<what>.sql`: comments that say why and how to reverse it, then statements, each
ended by a `;` at the end of a line. Running them again changes nothing: a lost ledger costs a second run, no more. One
that would copy a table again says in a comment, `Skipped when: SELECT …`, how it knows that there is nothing to do.
One process at a time migrates a store (`lease`); the others wait, and then find nothing left to apply.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from string import Template
from urllib.parse import urlsplit, urlunsplit

from clickhouse_driver import Client

from analytics.clickhouse import client, text_index
from analytics.clickhouse.address import resolve_url
from analytics.clickhouse.lease import MARK, Lease, LeaseLostError, migration_lease, wait_until_none_runs
from analytics.errors import AnalyticsQueryError

logger = logging.getLogger("analytics.migrations")

DIRECTORY = Path(__file__).parent / "migrations"

_UNKNOWN_DATABASE = 81
_UNKNOWN_TABLE = 60
_TAKEN_AWAY = re.compile(r"RENAME TABLE IF EXISTS (\w+) TO \w+_closed")
_LEDGER = """
CREATE TABLE IF NOT EXISTS schema_migrations (
    number UInt32, name String, applied_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
) ENGINE = MergeTree ORDER BY number
"""
_SKIPPED_WHEN = re.compile(r"^-- Skipped when: (SELECT .+)$", re.MULTILINE)
# Copying a table takes as long as it takes.
_NO_LIMIT = {"max_execution_time": 0}


@dataclass(frozen=True)
class Migration:
    number: int
    name: str
    text: str

    def statements(self, **values: str) -> Iterator[str]:
        """The statements with `$name` replaced, without comments."""
        bare = re.sub(r"^\s*--.*$", "", self.text, flags=re.MULTILINE)
        for statement in re.split(r";\s*$", Template(bare).substitute(values), flags=re.MULTILINE):
            if statement.strip():
                yield statement.strip()

    def is_done(self) -> bool:
        """By its own word; for most there is none."""
        condition = _SKIPPED_WHEN.search(self.text)
        return condition is not None and client.execute(condition[1]) == [(1,)]


def load_migrations(directory: Path = DIRECTORY) -> list[Migration]:
    found = [
        Migration(int(path.name.partition("_")[0]), path.stem, path.read_text(encoding="utf-8"))
        for path in sorted(directory.glob("[0-9]*_*.sql"))
    ]
    if len({migration.number for migration in found}) != len(found):
        raise ValueError(f"two migrations in {directory} have the same number")
    return found


def migrate() -> list[str]:
    """Apply what the ledger does not list; returns the names that this process applied.

    Raises AnalyticsUnavailableError when the store does not answer.
    """
    _create_ledger()
    applied: list[str] = []
    while _missing():
        with migration_lease() as lease:
            try:
                _apply_missing(lease, applied)
            except LeaseLostError:
                logger.warning("lease.lost number=%d", lease.number)
    return applied


def missing_migrations() -> list[str]:
    """Names of what is to be applied, in order. Writes nothing. Raises AnalyticsUnavailableError."""
    try:
        return [migration.name for migration in _missing()]
    except AnalyticsQueryError as error:
        if error.server_code not in (_UNKNOWN_DATABASE, _UNKNOWN_TABLE):
            raise
        return [migration.name for migration in load_migrations()]


def _missing() -> list[Migration]:
    done = {number for (number,) in client.execute("SELECT number FROM schema_migrations")}
    return [migration for migration in load_migrations() if migration.number not in done]


def _apply_missing(lease: Lease, applied: list[str]) -> None:
    values = text_index.migration_values(_has_text_indexes())
    # Read again: whoever had the lease before has applied some.
    for migration in _missing():
        for statement in () if migration.is_done() else migration.statements(**values):
            lease.check()
            client.execute(MARK + statement, settings=_NO_LIMIT)
            _wait_for_inserts(statement)
        lease.check()
        client.insert(
            "schema_migrations", ("number", "name"), [(migration.number, migration.name)], token=migration.name
        )
        logger.info("migration.applied name=%s", migration.name)
        applied.append(migration.name)


def _wait_for_inserts(statement: str) -> None:
    """Until what was under way into a table that has just been taken away is stored.

    Shippers of other hosts go on while a store is migrated. An insert that began before the table went away ends after
    it, in some tables before the migration reads or empties them and in others afterwards.
    """
    taken = _TAKEN_AWAY.fullmatch(statement)
    if taken is not None:
        wait_until_none_runs(f"INSERT INTO {taken[1]} ")


def _create_ledger() -> None:
    try:
        client.execute(_LEDGER)
    except AnalyticsQueryError as error:
        if error.server_code != _UNKNOWN_DATABASE:
            raise
        _create_database()
        client.execute(_LEDGER)


def _create_database() -> None:
    """A server refuses a connection to a database that is not there, so this takes one to `default`."""
    url = urlsplit(resolve_url())
    name = url.path.strip("/")
    if not name.isidentifier():
        raise ValueError("The database in CLICKHOUSE_URL has to be a plain name.")
    connection = Client.from_url(urlunsplit(url._replace(path="/default")))
    try:
        connection.execute(f"CREATE DATABASE IF NOT EXISTS {name}")
    finally:
        connection.disconnect()


def _has_text_indexes() -> bool:
    """Servers from 26.2 on. Without them a search reads the texts of a bounded range."""
    probe = (
        "SELECT hasAllTokens('text', {all:Array(String)}, {by:String}), "
        "hasAnyTokens('text', {any:Array(String)}, {by:String})"
    )
    try:
        client.execute(probe, {"all": ["text"], "any": text_index.fours("tex"), "by": text_index.TOKENS})
    except AnalyticsQueryError:
        return False
    return True
