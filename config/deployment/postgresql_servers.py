from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, LiteralString

import psycopg
from django.db import connection
from psycopg.rows import DictRow, dict_row

from config.deployment.problem import Problem

_CHECK = "database"
# So many connections, one after the other, find out that an address leads to several servers in turn.
_CONNECTIONS = 8
_SECONDS = 5.0
_MUCH = 0.8

_SERVER = "SELECT system_identifier, pg_postmaster_start_time() FROM pg_control_system()"
_IS_REPLICA = "SELECT pg_is_in_recovery() AS it"
_LAGS = """
SELECT application_name, extract(epoch FROM replay_lag)::int AS seconds FROM pg_stat_replication
WHERE replay_lag > interval '30 seconds' ORDER BY replay_lag DESC
"""
_USE = "SELECT count(*) AS used, current_setting('max_connections')::int AS allowed FROM pg_stat_activity"
_CLOSED = """
SELECT string_agg(relname, ', ' ORDER BY relname) AS tables FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relname = ANY(%s) AND NOT (
    has_table_privilege(oid, 'SELECT') AND has_table_privilege(oid, 'INSERT')
    AND has_table_privilege(oid, 'UPDATE') AND has_table_privilege(oid, 'DELETE')
)
"""
_MAKES_TABLES = "SELECT has_schema_privilege(current_schema(), 'CREATE') AS it"


def refuse() -> Iterator[Problem]:
    if connection.vendor != "postgresql":
        return
    with suppress(psycopg.OperationalError):
        yield from _read_only()
        yield from _several()


def advise() -> Iterator[Problem]:
    if connection.vendor != "postgresql":
        return
    with suppress(psycopg.OperationalError), _connect() as server:
        yield from _rights(server)
        for replica in server.execute(_LAGS):
            message = f"The replica {replica['application_name']} is {replica['seconds']} s behind, which is lost if"
            yield Problem(_CHECK, f"{message} it takes over.", is_fatal=False)
        use = _row(server, _USE)
        if use["used"] > _MUCH * use["allowed"]:
            message = f"{use['used']} of {use['allowed']} connections of the database server are taken: use a pooler"
            yield Problem(_CHECK, f"{message}, or set DATABASE_POOL_SIZE.", is_fatal=False)
        yield from _pooler()


def _connect(**options: str) -> psycopg.Connection[DictRow]:
    return psycopg.connect(**{**_options(), **options}, autocommit=True, row_factory=dict_row)


def _options() -> dict[str, Any]:
    libpq = {option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults()}
    return {name: value for name, value in connection.get_connection_params().items() if name in libpq}


def _row(server: psycopg.Connection[DictRow], sql: LiteralString, *values: object) -> DictRow:
    [row] = server.execute(sql, values or None)
    return row


def _read_only() -> Iterator[Problem]:
    """Distinguishes a read-only server from an unreachable one, since libpq passes over both."""
    try:
        _connect().close()
        return
    except psycopg.OperationalError:
        with _connect(target_session_attrs="any") as server:
            what = "replicas" if _row(server, _IS_REPLICA)["it"] else "servers whose transactions are read-only"
    yield Problem(_CHECK, f"DATABASE_URL leads to {what} alone, which take no writes.")


def _several() -> Iterator[Problem]:
    found = set()
    for _ in range(_CONNECTIONS):
        # Where this user may not ask which server it is, nothing is found.
        with suppress(psycopg.errors.InsufficientPrivilege), _connect() as server:
            found.add(tuple(_row(server, _SERVER).values()))
    if len(found) > 1:
        message = f"DATABASE_URL leads to {len(found)} servers in turn that all take writes, and each would have a part"
        yield Problem(_CHECK, f"{message} of the keys and settings: name one primary.")


def _rights(server: psycopg.Connection[DictRow]) -> Iterator[Problem]:
    ours = connection.introspection.django_table_names()
    if tables := _row(server, _CLOSED, ours)["tables"]:
        yield Problem(_CHECK, f"The user in DATABASE_URL may not read and change all rows of {tables}: grant it that.")
    if not _row(server, _MAKES_TABLES)["it"]:
        message = "The user in DATABASE_URL may not make tables: have another one run `manage.py migrate`."
        yield Problem(_CHECK, message, is_fatal=False)


def _pooler() -> Iterator[Problem]:
    """Finds a pooler that lends no transaction, or not two at once, which a migration under its lock needs."""
    try:
        with _connect() as first, first.transaction():
            first.execute("SELECT 1")
            asyncio.run(_begin_another())
    except TimeoutError:
        message = (
            f"A second transaction beside another did not begin within {_SECONDS:.0f} s, and a migration takes two"
        )
        yield Problem(_CHECK, f"{message}: give the pooler in DATABASE_URL more connections.")
    except psycopg.OperationalError as error:
        yield Problem(_CHECK, f"DATABASE_URL leads to what allows no transactions ({str(error).strip()}).")


async def _begin_another() -> None:
    async with asyncio.timeout(_SECONDS):
        async with await psycopg.AsyncConnection.connect(**_options()) as second:
            await second.execute("SELECT 1")
