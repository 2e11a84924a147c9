"""Moves a request log of one server into the tables of another mode, partition by partition.

Records meanwhile wait in the spools, of hosts with the old settings and with the new ones: as in a migration that
copies, the tables that take them, `ingest` and `anonymised`, are renamed away in both databases. In the old one they
stay away, under a name that says where the rows are and since when, so that no record enters a database that nobody
reads.

Writes that bypass `ingest` go on: spans and logs of applications, scores and feedback. Their tables keep one of several
rows with the same key, so their partitions can be copied again at any time. Each further run does so with partitions
that have changed since the old database was closed.

Any other partition is either complete, or emptied and copied again. So an interrupted move is simply run again.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum, auto

from analytics.clickhouse import client
from analytics.clickhouse.address import database
from analytics.clickhouse.late_figures import settle_closed
from analytics.clickhouse.lease import MARK, Lease, LeaseLostError, migration_lease, wait_until_none_runs
from analytics.clickhouse.migrator import missing_migrations
from analytics.clickhouse.topology.checks import require_fit
from analytics.deletion.again import erase_again, tombstones, withdraw_copies
from analytics.moving.errors import CannotMoveError
from analytics.moving.tables import Amount, Partition, Table, names_in, tables_of

_GATES = ("anonymised", "ingest")
_MOVED = re.compile(r"ingest_moved_to_(?P<to>\w+)_(?P<at>\d{14})")
_TIME = "%Y%m%d%H%M%S"
_NOW = "SELECT formatDateTime(now('UTC'), '%Y%m%d%H%i%S')"
_RUNNING = """
SELECT count() FROM system.processes
WHERE current_database = {database:String} AND position(query, {text:String}) > 0 AND query_id != queryID()
"""
_LOOK_EVERY_SECONDS = 0.2
# Scores that changed this long before the old database was closed are copied from the SQL database again.
_COPIES_BEHIND = timedelta(hours=1)
# As many rows at once as migrations copy: a state of percentiles in memory is many times its size on disk.
_NO_LIMIT = {"max_execution_time": 0}
_COPY = {
    **_NO_LIMIT,
    "max_threads": 1,
    "max_block_size": 8192,
    "min_insert_block_size_rows": 8192,
    "min_insert_block_size_bytes": 0,
    "max_partitions_per_insert_block": 0,
    "insert_deduplicate": 0,
}


class _State(Enum):
    NEW = auto()
    GOING_ON = auto()
    # The new database takes records: only what came into the old one past `ingest` is still to be copied.
    TAKES_RECORDS = auto()


@dataclass(frozen=True)
class Moved:
    """A complete partition, the `number`th of `partitions`; `copied` says whether this run copied it."""

    table: str
    partition: str
    copied: bool
    number: int
    partitions: int


def move(source: str) -> Iterator[Moved]:
    """Copies the rows of the database `source`, yields each complete partition, compares both databases and lets
    records in.

    Raises CannotMoveError, ImproperlyConfigured and the store's errors before the first partition, with nothing
    changed; CannotMoveError too if rows are missing at the end.
    """
    require_fit()
    if missing := missing_migrations():
        raise CannotMoveError(
            f"The database {database()} lacks migrations ({len(missing)}): run `manage.py migrate_analytics` first."
        )
    tables = tables_of(source)
    _state(source, tables)
    try:
        with migration_lease() as lease:
            # Another process may have moved rows while this one waited for the lease.
            yield from _move(source, tables, _state(source, tables), lease)
    except LeaseLostError:
        raise CannotMoveError("Another process has taken over: run the command again when it has ended.") from None


def settle(source: str, done: Callable[[int], object]) -> int:
    """Applies to the new database what changed in the old one after the copy: erases deleted data, copies scores and
    feedback.

    Returns the number of requests erased; `done` counts deletions. Raises the errors of the store.
    """
    closed_at = datetime.strptime(_closed(source)["at"], _TIME).replace(tzinfo=UTC)
    erased = erase_again(tombstones(), log=True, done=done)
    withdraw_copies(closed_at - _COPIES_BEHIND)
    return erased


def _move(source: str, tables: list[Table], state: _State, lease: Lease) -> Iterator[Moved]:
    if state is not _State.TAKES_RECORDS:
        _close_gates(source)
        # Figures that are still to be made of rows would be made in both databases.
        settle_closed(source)
    chosen = [table for table in tables if table.replaces or state is not _State.TAKES_RECORDS]
    # Rows of tables that replace go on coming, so that those count which were there before the table was copied.
    before = {table: table.theirs() for table in chosen if table.replaces}
    yield from _copy_all(chosen, before, _closed(source)["at"], lease)
    for table in chosen:
        _compare(table, before.get(table))
    lease.check()
    for gate in _GATES:
        client.execute(f"RENAME TABLE IF EXISTS {_awaiting(gate, source)} TO {gate}")


def _state(source: str, tables: list[Table]) -> _State:
    ours, theirs = names_in(database()), names_in(source)
    if (moved := _closed_in(theirs)) is not None:
        if moved["to"] != database():
            raise CannotMoveError(f"The rows of {source} were moved to {moved['to']}: move them from there.")
        return _State.TAKES_RECORDS if "ingest" in ours else _State.GOING_ON
    if "ingest" not in theirs:
        raise CannotMoveError(f"A migration of {source} was broken off: run `manage.py migrate_analytics` on it first.")
    for table in tables:
        if not table.replaces and client.execute(f"SELECT 1 FROM {table.name} LIMIT 1", fresh=(table.name,)):
            raise CannotMoveError(f"Table {table.name} of {database()} has rows already: move into a database without.")
    return _State.NEW


def _closed(source: str) -> re.Match[str]:
    found = _closed_in(names_in(source))
    if found is None:
        raise CannotMoveError(f"The database {source} takes records again: move into a database without rows.")
    return found


def _closed_in(names: set[str]) -> re.Match[str] | None:
    return next((found for name in names if (found := _MOVED.fullmatch(name))), None)


def _close_gates(source: str) -> None:
    [(now,)] = client.execute(_NOW)
    for gate in _GATES:
        client.execute(f"RENAME TABLE IF EXISTS {gate} TO {_awaiting(gate, source)}")
        client.execute(f"RENAME TABLE IF EXISTS {source}.{gate} TO {source}.{gate}_moved_to_{database()}_{now}")
    for gate in _GATES:
        insert = f"INSERT INTO {gate} "
        wait_until_none_runs(insert)
        while client.execute(_RUNNING, {"database": source, "text": insert}) != [(0,)]:
            time.sleep(_LOOK_EVERY_SECONDS)


def _awaiting(gate: str, source: str) -> str:
    # A migration would give a table its name back that another migration has taken away.
    return f"{gate}_awaiting_{source}"


def _copy_all(
    tables: list[Table], before: Mapping[Table, Mapping[str, Amount]], since: str, lease: Lease
) -> Iterator[Moved]:
    partitions = {table: table.partitions() for table in tables}
    total, number = sum(map(len, partitions.values())), 0
    for table in tables:
        for partition, copied in _copy_table(table, partitions[table], before.get(table), since, lease):
            number += 1
            yield Moved(table.name, partition.key, copied, number, total)


def _copy_table(
    table: Table, partitions: list[Partition], before: Mapping[str, Amount] | None, since: str, lease: Lease
) -> Iterator[tuple[Partition, bool]]:
    ours = table.ours()
    theirs = before if before is not None else table.theirs() if ours else {}
    changed = table.changed_since(since) if table.replaces else set()
    for key in ours.keys() - {partition.key for partition in partitions}:
        if not table.replaces:
            _empty(table, key)
    for partition in partitions:
        has = ours.get(partition.key)
        is_there = has is not None and _is_enough(table, has, theirs.get(partition.key, ()))
        if not is_there or partition.id in changed:
            lease.check()
            if has is not None and not table.replaces:
                _empty(table, partition.key)
            _copy(table, partition)
        yield partition, not is_there or partition.id in changed


def _is_enough(table: Table, ours: Amount, theirs: Amount) -> bool:
    """A table that replaces rows may also have some of the new database's own."""
    return ours >= theirs if table.replaces else ours == theirs


def _empty(table: Table, key: str) -> None:
    client.execute(f"DELETE FROM {table.name} WHERE toString({table.key}) = {{key:String}}", {"key": key}, _NO_LIMIT)


def _copy(table: Table, partition: Partition) -> None:
    # The mark has whoever takes the lease of a killed process wait until its statement has ended.
    client.execute(
        f"{MARK}INSERT INTO {table.name} ({table.listed}) SELECT {table.listed} FROM {table.source}.{table.name}"
        " WHERE _partition_id = {partition:String}",
        {"partition": partition.id},
        _COPY,
    )


def _compare(table: Table, before: Mapping[str, Amount] | None) -> None:
    theirs, ours = table.theirs() if before is None else before, table.ours()
    for key in sorted(theirs.keys() | (set() if table.replaces else ours.keys())):
        if key not in ours or not _is_enough(table, ours[key], theirs.get(key, ())):
            raise CannotMoveError(
                f"Table {table.name} is not the same in both databases (partition {key}): run the command again."
            )
