"""Brings the tables of the analytics store up to this version of the code.

A new store gets the tables of `schema/`, one file for each table with the views that fill it. The ledger, table
`schema_migrations`, counts them as migration 56: they result from 56 migrations that were folded before the first
release. A store at number 56 goes on from there.

A later column of the request log is a migration made from its declaration (`log_columns`). Every other change is
`migrations/<number>_<subject>.sql`: comments that say why and how to reverse it, then statements, each ended by a `;`
at the end of a line. Migrations are idempotent, so a lost ledger only costs a second run. A migration that would copy a
table again says in a comment, `Skipped when: SELECT …`, how it recognises that it is done. One process at a time
migrates a store (`lease`); the others wait, and then find nothing left to apply.
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
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from analytics.clickhouse import client, ledger, log_columns, text_index
from analytics.clickhouse.address import resolve_url
from analytics.clickhouse.lease import MARK, Lease, LeaseLostError, migration_lease, wait_until_none_runs
from analytics.clickhouse.topology import routing
from analytics.clickhouse.topology.checks import require_fit
from analytics.clickhouse.topology.ddl import definitions
from analytics.clickhouse.topology.mode import Kind, mode, refuse_unproven
from analytics.errors import AnalyticsQueryError, AnalyticsSchemaError

logger = logging.getLogger("analytics.migrations")

SCHEMA = Path(__file__).parent / "schema"
SCHEMA_NUMBER = ledger.SCHEMA_NUMBER
MIGRATIONS = ledger.MIGRATIONS
# The revisions of the repository that have a part of the chain, each with the number up to which it brings a store. One
# begins where the one before it has ended.
_CHAIN = {46: "e78af81", SCHEMA_NUMBER: "d401361e"}

_UNKNOWN_DATABASE = 81
_UNKNOWN_TABLE = 60
_RENAMED_AWAY = re.compile(r"RENAME TABLE IF EXISTS (\w+) TO \w+_closed")
LEDGER = """
CREATE TABLE IF NOT EXISTS schema_migrations (
    number UInt32, name String, applied_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
) ENGINE = MergeTree ORDER BY number
"""
_LEDGER_TABLES = ("schema_migrations",)
_SKIPPED_WHEN = re.compile(r"^-- Skipped when: (SELECT .+)$", re.MULTILINE)
# Views of the schema that read all columns of a table are refused once it has later ones, even if they are there.
_SCHEMA_DONE = (
    "-- Skipped when: SELECT count() FROM system.tables WHERE database = currentDatabase() AND name = '{view}'\n"
)
# The time limit of queries must not end a migration that copies a large table.
_NO_LIMIT = {"max_execution_time": 0}


@dataclass(frozen=True)
class Migration:
    number: int
    name: str
    text: str

    def statements(self, **values: str) -> Iterator[str]:
        """Returns the statements without comments and with each `$name` replaced by its value."""
        for statement in _split(self.text):
            yield Template(statement).substitute(values)

    def is_done(self) -> bool:
        condition = _SKIPPED_WHEN.search(self.text)
        return condition is not None and client.execute(condition[1]) == [(1,)]


def load_migrations() -> list[Migration]:
    found = written_migrations()
    for column in log_columns.later_columns():
        text = column.migration(one.text for one in found if one.number < column.number)
        found.append(Migration(column.number, f"{column.number:04}_{column.name}", text))
    if len({migration.number for migration in found}) != len(found):
        raise ValueError(f"two migrations of {MIGRATIONS} and of the columns of the request log have the same number")
    return sorted(found, key=lambda migration: migration.number)


def written_migrations() -> list[Migration]:
    return [
        _load_schema(),
        *(
            Migration(int(path.name.partition("_")[0]), path.stem, path.read_text(encoding="utf-8"))
            for path in sorted(MIGRATIONS.glob(ledger.FILES))
        ),
    ]


def _load_schema() -> Migration:
    statements = [
        statement for path in sorted(SCHEMA.glob("*.sql")) for statement in _split(path.read_text(encoding="utf-8"))
    ]
    statements.sort(key=lambda statement: statement.startswith("CREATE MATERIALIZED VIEW"))
    text = _SCHEMA_DONE.format(view=statements[-1].split()[6]) + "".join(f"{one};\n" for one in statements)
    return Migration(SCHEMA_NUMBER, f"{SCHEMA_NUMBER:04}_schema", text)


def _split(text: str) -> Iterator[str]:
    bare = re.sub(r"^\s*--.*$", "", text, flags=re.MULTILINE)
    for statement in re.split(r";\s*$", bare, flags=re.MULTILINE):
        if statement.strip():
            yield statement.strip()


def migrate() -> list[str]:
    """Returns the names of the migrations that this process applied.

    Raises AnalyticsUnavailableError when the store does not answer, AnalyticsSchemaError for a store older than this
    version's schema, and ImproperlyConfigured for an unproven mode or servers that do not match the mode.
    """
    look()
    _create_ledger()
    applied: list[str] = []
    while _missing():
        with migration_lease() as lease:
            try:
                _apply_missing(lease, applied)
            except LeaseLostError:
                logger.warning("lease.lost number=%d", lease.number)
    return applied


def look() -> None:
    """Raises what `migrate` would raise for this store, and writes nothing."""
    refuse_unproven()
    require_fit()
    missing_migrations()


def missing_migrations() -> list[str]:
    """Returns the names of the pending migrations in order, and writes nothing. Raises the same errors as `migrate`."""
    refuse_unproven()
    try:
        return [migration.name for migration in _missing()]
    except AnalyticsQueryError as error:
        if error.server_code not in (_UNKNOWN_DATABASE, _UNKNOWN_TABLE):
            raise
        return [migration.name for migration in load_migrations()]


def _missing() -> list[Migration]:
    done = {number for (number,) in client.execute("SELECT number FROM schema_migrations", fresh=_LEDGER_TABLES)}
    if done and SCHEMA_NUMBER not in done:
        revisions = [revision for number, revision in _CHAIN.items() if max(done) < number]
        raise AnalyticsSchemaError(
            f"The analytics store is at migration {max(done)}, and this version begins at {SCHEMA_NUMBER}."
            f" {_way_out(revisions)}"
        )
    return [migration for migration in load_migrations() if migration.number not in done]


def _way_out(revisions: list[str]) -> str:
    old = ", then ".join(f"of revision {revision}" for revision in revisions)
    if settings.CLICKHOUSE_URL:
        return f"Run `manage.py migrate_analytics` {old} first, then of this version."
    return (
        f"Start `manage.py serve` {old} with the same VAR_DIR, stop each once its log says `analytics.prepared`, and"
        " then start this version."
    )


def _apply_missing(lease: Lease, applied: list[str]) -> None:
    clauses = text_index.clauses(known=_has_text_indexes())
    # The ledger is read again, because the former holder of the lease may have applied some.
    for migration in _missing():
        for statement in () if migration.is_done() else migration.statements(**clauses):
            lease.check_now_and_then()
            _run(statement, lease)
            _wait_for_inserts(statement)
        lease.check()
        client.insert(
            "schema_migrations", ("number", "name"), [(migration.number, migration.name)], token=migration.name
        )
        logger.info("migration.applied name=%s", migration.name)
        applied.append(migration.name)


def _run(statement: str, lease: Lease) -> None:
    try:
        client.execute(MARK + statement, settings=_NO_LIMIT, fresh=routing.tables_read(statement))
    except AnalyticsQueryError:
        lease.check()
        raise


def _wait_for_inserts(statement: str) -> None:
    """Waits for the inserts that were running when `statement` renamed their table.

    Other hosts' shippers go on during a migration. Such an insert reaches some tables before the migration reads or
    empties them, and others afterwards.
    """
    renamed = _RENAMED_AWAY.fullmatch(statement)
    if renamed is not None:
        wait_until_none_runs(f"INSERT INTO {renamed[1]} ")


def _create_ledger() -> None:
    try:
        client.execute(LEDGER)
    except AnalyticsQueryError as error:
        if error.server_code != _UNKNOWN_DATABASE:
            raise
        _create_database()
        client.execute(LEDGER)


def _create_database() -> None:
    """Connects to `default`: a server refuses a connection to a database that does not exist."""
    url = urlsplit(resolve_url())
    name = url.path.strip("/")
    if not name.isidentifier():
        raise ImproperlyConfigured("The database in CLICKHOUSE_URL has to be a plain name.")
    created = definitions(f"CREATE DATABASE IF NOT EXISTS {name}", mode(), name)
    if mode().kind is Kind.REPLICATED:
        # Each server has to join a Replicated database by itself, and this connection belongs to one of them.
        raise ImproperlyConfigured(f"The analytics store has no database yet. Run on each of its servers: {created[0]}")
    connection = Client.from_url(urlunsplit(url._replace(path="/default")))
    try:
        for definition in created:
            connection.execute(definition)
    finally:
        connection.disconnect()


def _has_text_indexes() -> bool:
    """Text indexes came with 26.2. Without them a search reads the texts."""
    probe = (
        "SELECT hasAllTokens('text', {all:Array(String)}, {by:String}), "
        "hasAnyTokens('text', {any:Array(String)}, {by:String})"
    )
    try:
        client.execute(probe, {"all": ["text"], "any": ["text", "word"], "by": text_index.WORD_TOKENS})
    except AnalyticsQueryError:
        return False
    return True
