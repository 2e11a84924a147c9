"""Checks that the servers match the mode, before anything is stored on them.

Without a mode, two servers behind one address would each get a share of the rows, and nothing else would notice.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import parse_qs, urlsplit

from clickhouse_driver import Client
from clickhouse_driver import errors as driver_errors
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from analytics.clickhouse.address import database, resolve_url
from analytics.clickhouse.connections import new_client
from analytics.clickhouse.topology.mode import ALL_SHARDS, Kind, mode
from analytics.errors import AnalyticsUnavailableError

_CONNECTIONS = 6
_SECONDS = 10.0
_NO_DATABASE = "no database"
_UNKNOWN_DATABASE = 81
_IDENTITY = "SELECT toString(serverUUID()), toString(uuid) FROM system.databases WHERE name = currentDatabase()"
_ENGINE = "SELECT engine FROM system.databases WHERE name = currentDatabase()"
_CLUSTER = "SELECT count() FROM system.clusters WHERE cluster = '{cluster}'"
_MACROS = "SELECT groupArray(macro) FROM system.macros WHERE macro IN ('shard', 'replica')"
# A column that not every server has, of the tables of this database.
_COLUMNS = """
SELECT table, name, count() AS servers, (SELECT count() FROM {one}) AS all
FROM {columns} WHERE database = '{database}' AND NOT startsWith(table, 'migration_lease_')
GROUP BY table, name HAVING servers != all ORDER BY table, name LIMIT 1
"""
_ON_THE_DATABASE = (
    "SELECT", "INSERT", "ALTER COLUMN", "ALTER INDEX", "ALTER ORDER BY", "ALTER DELETE", "ALTER MODIFY COMMENT",
    "ALTER VIEW", "CREATE TABLE", "CREATE VIEW", "DROP TABLE", "DROP VIEW", "TRUNCATE", "OPTIMIZE",
)  # fmt: skip
_BETWEEN_SERVERS = {
    Kind.SINGLE: (),
    Kind.REPLICATED: ("SYSTEM SYNC REPLICA", "SYSTEM SYNC DATABASE REPLICA"),
    Kind.CLOUD: ("SYSTEM SYNC REPLICA",),
    Kind.CLUSTER: ("SYSTEM SYNC REPLICA",),
}
_ON_EVERYTHING = {
    Kind.SINGLE: (),
    Kind.REPLICATED: ("REMOTE",),
    Kind.CLOUD: ("REMOTE",),
    Kind.CLUSTER: ("REMOTE", "CLUSTER"),
}
_ENGINES = {
    Kind.SINGLE: ("Atomic", "Ordinary"),
    Kind.REPLICATED: ("Replicated",),
    Kind.CLOUD: ("Replicated", "Shared"),
    Kind.CLUSTER: ("Atomic",),
}


def require_fit() -> None:
    for fault in find_faults():
        raise ImproperlyConfigured(fault)


def find_faults() -> Iterator[str]:
    """Yields faults that the operator must mend, each with the way to do so. Skips the embedded engine and a missing
    database.

    Raises AnalyticsUnavailableError.
    """
    if settings.CLICKHOUSE_URL is None:
        return
    if mode().is_single:
        yield from _several_servers()
    if _identity() == _NO_DATABASE:
        return
    with _connected() as client:
        yield from _wrong_database(client)
        if not mode().is_single:
            yield from _wrong_servers(client)
        yield from _missing_grants(client)


def find_differences() -> Iterator[str]:
    """Yields the first column that only some servers have, as may be so briefly while another host migrates them.
    Raises AnalyticsUnavailableError."""
    if mode().is_single:
        return
    asked = {"one": mode().system("one", database()), "columns": mode().system("columns", database())}
    with _connected() as client:
        for table, column, some, every in client.execute(_COLUMNS.format(**asked, database=database())):
            yield f"Column {column} of table {table} is on {some} of {every} servers: see docs/clickhouse.md."


@contextmanager
def _connected() -> Iterator[Client]:
    """Opens a new connection, because the check is about which server it reaches."""
    client = new_client(resolve_url(), _SECONDS)
    try:
        yield client
    except (driver_errors.Error, OSError, EOFError) as error:
        raise AnalyticsUnavailableError("The analytics store does not answer.") from error
    finally:
        client.disconnect()


def _several_servers() -> Iterator[str]:
    if "alt_hosts" in parse_qs(urlsplit(resolve_url()).query):
        yield "CLICKHOUSE_URL names several servers (alt_hosts), which need a CLICKHOUSE_MODE: see docs/clickhouse.md."
        return
    found = {_identity() for _ in range(_CONNECTIONS)}
    if len(found) > 1:
        yield (
            f"CLICKHOUSE_URL reaches {len(found)} servers in turn, and each would hold a share of the rows: name one of"
            " them, or set CLICKHOUSE_MODE."
        )


def _identity() -> str:
    try:
        with _connected() as client:
            return repr(client.execute(_IDENTITY))
    except AnalyticsUnavailableError as error:
        if getattr(error.__cause__, "code", 0) != _UNKNOWN_DATABASE:
            raise
        return _NO_DATABASE


def _wrong_database(client: Client) -> Iterator[str]:
    for (engine,) in client.execute(_ENGINE):
        if engine not in _ENGINES[mode().kind]:
            yield (
                f"The database {database()} has the engine {engine}, which is none of CLICKHOUSE_MODE="
                f"{settings.CLICKHOUSE_MODE}: see docs/clickhouse.md."
            )


def _wrong_servers(client: Client) -> Iterator[str]:
    cluster = mode().cluster(database())
    [(servers,)] = client.execute(_CLUSTER.format(cluster=cluster))
    if not servers:
        yield f"The servers know no cluster {cluster} (system.clusters): see CLICKHOUSE_MODE."
        return
    [(macros,)] = client.execute(_MACROS)
    if mode().kind is not Kind.CLOUD:
        for macro in sorted({"shard", "replica"} - set(macros)):
            yield f"The servers have no macro {macro}, which the paths of replicated tables need."


def _missing_grants(client: Client) -> Iterator[str]:
    kind = mode().kind
    databases = [database()] + ([f"{database()}{ALL_SHARDS}"] if kind is Kind.CLUSTER else [])
    wanted = [(grant, f"{one}.*") for one in databases for grant in (*_ON_THE_DATABASE, *_BETWEEN_SERVERS[kind])]
    for grant, place in [*wanted, *((grant, "*.*") for grant in _ON_EVERYTHING[kind])]:
        [(has,)] = client.execute(f"CHECK GRANT {grant} ON {place}")
        if not has:
            yield f"The user of CLICKHOUSE_URL lacks a right: GRANT {grant} ON {place}."
