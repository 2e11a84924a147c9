from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID, uuid4

from analytics.clickhouse import client, lease, migrator
from analytics.clickhouse.address import at
from analytics.clickhouse.topology.mode import mode
from analytics.clickhouse.visible import visible_until
from analytics.errors import AnalyticsQueryError, AnalyticsUnavailableError
from analytics.proof import rows
from analytics.proof.servers import Server

_BATCH = 200
_ROUNDS = 5
_INSERT = "INSERT INTO ingest "
# Two seconds of inserting: long enough for another server to be asked what runs.
_SLOW_ROWS, _SLOW_SECONDS = 100, 0.02
_SLOW_INSERT = f"""
INSERT INTO ingest (project_id, ts, request_id, outcome, retention_days)
SELECT {{project:UUID}}, now64(6), generateUUIDv4(), 'success', 400
FROM (SELECT number + sleepEachRow({_SLOW_SECONDS}) AS number FROM numbers({_SLOW_ROWS}))
"""
_TABLES = """
SELECT t.name AS name, t.engine AS engine, groupArray((c.name, c.type)) AS columns
FROM system.tables AS t
LEFT JOIN (
    SELECT table, name, type FROM system.columns WHERE database = currentDatabase() ORDER BY table, position
) AS c ON c.table = t.name
WHERE t.database = currentDatabase() GROUP BY name, engine ORDER BY name
"""


class BrokenPromiseError(Exception):
    pass


@dataclass(frozen=True)
class Promise:
    """`text` says what is expected; `keep` raises BrokenPromiseError, or an error of the store."""

    name: str
    text: str
    keep: Callable[[Sequence[Server]], None]


@dataclass(frozen=True)
class _Table:
    name: str
    engine: str
    columns: list[tuple[str, str]]


def _have_the_same_tables(servers: Sequence[Server]) -> None:
    first, *others = servers
    with at(first.url):
        migrator.migrate()
    expected = _tables(first)
    for table in expected.values():
        unreplicated = table.engine.endswith("MergeTree") and not table.engine.startswith(("Replicated", "Shared"))
        if unreplicated and not mode().is_single:
            raise BrokenPromiseError(f"table {table.name} is on {first.name} alone: its engine is {table.engine}")
    for server in others:
        found = _tables(server)
        for name in sorted(expected.keys() | found.keys()):
            if found.get(name) != expected.get(name):
                raise BrokenPromiseError(
                    f"{server.name} has {_shape(found, name)}, {first.name} {_shape(expected, name)}"
                )
        with at(server.url):
            if missing := migrator.missing_migrations():
                raise BrokenPromiseError(f"{server.name} lacks migration {missing[0]}, which {first.name} has applied")


def _tables(server: Server) -> dict[str, _Table]:
    with at(server.url):
        found = client.query(_TABLES, {}, row=_Table, name="proof.tables")
    return {table.name: table for table in found if not table.name.startswith("migration_lease_")}


def _shape(tables: dict[str, _Table], name: str) -> str:
    table = tables.get(name)
    return f"{name} ({table.engine}, {len(table.columns)} columns)" if table else f"no {name}"


def _let_one_migrator_in(servers: Sequence[Server]) -> None:
    for _ in range(_ROUNDS):
        with at(servers[0].url):
            newest = lease.newest_lease()
        number = newest.number + 1 if newest else 1
        if (made := _ask_at_once(servers, number)) != 1:
            raise BrokenPromiseError(f"{made} of {len(servers)} that asked for one lease at once got it")
        for server in servers:
            with at(server.url):
                seen = lease.newest_lease()
            if seen is None or seen.number != number:
                raise BrokenPromiseError(f"{server.name} does not see lease {number}, which was taken")


def _ask_at_once(servers: Sequence[Server], number: int) -> int:
    made: list[bool] = []
    failures: list[Exception] = []

    def ask(server: Server) -> None:
        try:
            with at(server.url):
                made.append(lease.create_lease(number, "proof"))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=copy_context().run, args=(ask, server)) for server in servers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return sum(made)


def _store_a_token_once(servers: Sequence[Server]) -> None:
    project = uuid4()
    batch, token = rows.make_rows(project, _BATCH), uuid4().hex
    for server in (*servers, servers[0]):
        with at(server.url):
            client.insert(rows.TABLE, rows.COLUMNS, batch, token=token)
    found = {server.name: _digest(server, project) for server in servers}
    for name, seen in found.items():
        if (seen.rows, seen.ids) != (_BATCH, _BATCH):
            raise BrokenPromiseError(
                f"a batch of {_BATCH} that was sent to each server under one token is {seen.rows} rows on {name}"
            )
    if len(set(found.values())) > 1:
        raise BrokenPromiseError(f"the rows of one batch are not the same on {' and '.join(found)}")
    _check_rollups(servers, project)


def _check_rollups(servers: Sequence[Server], project: UUID) -> None:
    for server in servers:
        with at(server.url):
            differing, texts, requests = (
                rows.differing_rollups(project),
                rows.count_texts(project),
                rows.digest(project),
            )
        if differing:
            raise BrokenPromiseError(f"figures differ from their requests on {server.name}: {', '.join(differing)}")
        if texts != requests.rows:
            raise BrokenPromiseError(f"{server.name} has texts of {texts} of {requests.rows} requests")


def _digest(server: Server, project: UUID) -> rows.Digest:
    with at(server.url):
        return rows.digest(project)


def _read_what_was_written(servers: Sequence[Server]) -> None:
    project = uuid4()
    for number in range(_ROUNDS):
        writer, reader = servers[number % len(servers)], servers[(number + 1) % len(servers)]
        with at(writer.url):
            client.insert(rows.TABLE, rows.COLUMNS, rows.make_rows(project, _BATCH), token=uuid4().hex)
        expected, seen = (number + 1) * _BATCH, _digest(reader, project).rows
        if seen != expected:
            raise BrokenPromiseError(
                f"{reader.name} reads {seen} of {expected} rows right after {writer.name} has stored the last of them"
            )


def _see_what_runs(servers: Sequence[Server]) -> None:
    writer, reader = servers[0], servers[-1]
    project = uuid4()
    running = threading.Thread(target=copy_context().run, args=(_insert_slowly, writer, project))
    running.start()
    complete_until: datetime | None = None
    with at(reader.url):
        while running.is_alive() and complete_until is None:
            if lease.count_running(_INSERT):
                complete_until = visible_until()
        running.join()
        if complete_until is None:
            raise BrokenPromiseError(f"{reader.name} does not see an insert that runs on {writer.name}")
        earliest = _earliest(project)
    if earliest < complete_until:
        raise BrokenPromiseError(
            f"{reader.name} took rows for complete up to {complete_until:%H:%M:%S.%f}, and one of"
            f" {earliest:%H:%M:%S.%f} came afterwards"
        )


def _insert_slowly(writer: Server, project: UUID) -> None:
    with at(writer.url):
        client.execute(_SLOW_INSERT, {"project": project}, {"max_block_size": 10, "max_threads": 1})


def _earliest(project: UUID) -> datetime:
    sql = "SELECT min(recorded_at) FROM requests WHERE project_id = {project:UUID}"
    [found] = client.query(sql, {"project": project}, row=datetime, name="proof.earliest", fresh=("requests",))
    return found


def _close_the_gate(servers: Sequence[Server]) -> None:
    closer, writer = servers[0], servers[-1]
    project = uuid4()
    batch, token = rows.make_rows(project, _BATCH), uuid4().hex
    with at(closer.url):
        client.execute("RENAME TABLE IF EXISTS ingest TO ingest_closed")
    with at(writer.url):
        try:
            with suppress(AnalyticsQueryError, AnalyticsUnavailableError):
                client.insert(rows.TABLE, rows.COLUMNS, batch, token=token)
                raise BrokenPromiseError(f"{writer.name} takes rows after {closer.name} has taken `ingest` away")
        finally:
            client.execute("RENAME TABLE IF EXISTS ingest_closed TO ingest")
    with at(closer.url):
        client.insert(rows.TABLE, rows.COLUMNS, batch, token=token)
    if (seen := _digest(writer, project).rows) != _BATCH:
        raise BrokenPromiseError(f"{seen} of {_BATCH} rows are there that were sent again after the gate was opened")
    _check_rollups(servers, project)


def _delete_everywhere(servers: Sequence[Server]) -> None:
    project, other = uuid4(), uuid4()
    deleter, reader = servers[0], servers[-1]
    with at(reader.url):
        for one in (project, other):
            client.insert(rows.TABLE, rows.COLUMNS, rows.make_rows(one, _BATCH), token=uuid4().hex)
    with at(deleter.url):
        client.execute(
            "DELETE FROM requests WHERE project_id = {project:UUID}", {"project": project}, fresh=("requests",)
        )
    for server in servers:
        if left := _digest(server, project).rows:
            raise BrokenPromiseError(
                f"{server.name} still shows {left} of {_BATCH} rows that {deleter.name} has deleted"
            )
        if (seen := _digest(server, other).rows) != _BATCH:
            raise BrokenPromiseError(f"{server.name} shows {seen} of {_BATCH} rows of another project after a deletion")


def _agree_on_figures(servers: Sequence[Server]) -> None:
    project = uuid4()
    with at(servers[0].url):
        client.insert(rows.TABLE, rows.COLUMNS, rows.make_rows(project, _BATCH), token=uuid4().hex)
    _check_rollups(servers, project)
    first, *others = [(server, _figures(server, project)) for server in servers]
    for server, found in others:
        for name, values in found.items():
            if values != first[1][name]:
                raise BrokenPromiseError(f"figures {name} are not the same on {server.name} and {first[0].name}")


def _figures(server: Server, project: UUID) -> dict[str, object]:
    with at(server.url):
        return dict(rows.figures(project))


PROMISES = (
    Promise(
        "definitions", "every server has the same tables and columns, and none is on one alone", _have_the_same_tables
    ),
    Promise("lease", "of several that ask for a migration's lease at once, one gets it", _let_one_migrator_in),
    Promise("tokens", "a batch that is sent to every server under one token is stored once", _store_a_token_once),
    Promise(
        "reads", "a server reads what another has just stored, where a decision rests on it", _read_what_was_written
    ),
    Promise("running", "a server sees the inserts that run on another", _see_what_runs),
    Promise("gate", "no server takes rows while a migration has taken their table away", _close_the_gate),
    Promise("deletions", "no server shows rows that another has deleted", _delete_everywhere),
    Promise("figures", "every figure is the same on every server, and that of its requests", _agree_on_figures),
)
