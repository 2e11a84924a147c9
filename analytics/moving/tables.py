from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from analytics.clickhouse import client
from analytics.clickhouse.address import database
from analytics.moving.errors import CannotMoveError

_LEDGER = "schema_migrations"
_SCRATCH = "traffic_texts_"
_TABLES = """
SELECT t.name, t.engine, t.partition_key, c.columns FROM system.tables AS t INNER JOIN (
    SELECT table, groupArray((name, type)) AS columns FROM (
        SELECT table, name, type FROM system.columns
        WHERE database = {database:String} AND default_kind NOT IN ('MATERIALIZED', 'ALIAS') ORDER BY table, name
    ) GROUP BY table
) AS c ON c.table = t.name
WHERE t.database = {database:String} AND t.engine LIKE '%MergeTree' AND t.name != {ledger:String}
    AND NOT startsWith(t.name, {scratch:String})
ORDER BY t.name
"""
_NAMES = "SELECT name FROM system.tables WHERE database = {database:String}"
_MIGRATIONS = "SELECT DISTINCT number FROM {table} ORDER BY number"
# The newest change of a partition's parts; a merge counts as one.
_CHANGED = """
SELECT DISTINCT partition_id FROM system.parts
WHERE database = {database:String} AND table = {table:String} AND active
    AND modification_time >= parseDateTime({since:String}, '%Y%m%d%H%i%S', 'UTC')
"""
_NO_LIMIT = {"max_execution_time": 0}
# Which of the rows with one key counts, if they are in several partitions, depends on the order in which they came.
_EACH_PARTITION = {**_NO_LIMIT, "do_not_merge_across_partitions_select_final": 1}

# Sums and counts of a partition that are the same for the same rows.
Amount = tuple[Any, ...]


@dataclass(frozen=True)
class Partition:
    """`id` is the server's own name, `key` the value of the partition expression as text."""

    id: str
    key: str


@dataclass(frozen=True)
class Table:
    name: str
    source: str
    replaces: bool
    key: str
    columns: Mapping[str, str] = field(hash=False, repr=False)

    @property
    def listed(self) -> str:
        return ", ".join(f"`{column}`" for column in self.columns)

    def partitions(self) -> list[Partition]:
        sql = (
            f"SELECT _partition_id, toString(any({self.key})) FROM {self.source}.{self.name}"
            f" WHERE {self._expires} > today() GROUP BY _partition_id ORDER BY _partition_id"
        )
        return [Partition(*row) for row in client.execute(sql, settings=_NO_LIMIT)]

    def changed_since(self, moment: str) -> set[str]:
        """Returns ids of the old database's partitions; `moment` is UTC in digits, inclusive."""
        values = {"database": self.source, "table": self.name, "since": moment}
        return {name for (name,) in client.execute(_CHANGED, values)}

    def theirs(self) -> dict[str, Amount]:
        return self._amounts(f"{self.source}.{self.name}", ())

    def ours(self) -> dict[str, Amount]:
        return self._amounts(self.name, (self.name,))

    @property
    def _expires(self) -> str:
        return next(column for column in self.columns if column in ("drop_date", "DropDate"))

    def _amounts(self, table: str, fresh: tuple[str, ...]) -> dict[str, Amount]:
        # What expires today may be gone in one of them.
        sql = (
            f"SELECT toString({self.key}) AS part, {self._measures()} FROM {table}{' FINAL' if self._is_final else ''}"
            f" WHERE {self._expires} > today() GROUP BY part"
        )
        found = client.execute(sql, settings=_EACH_PARTITION, fresh=fresh)
        return {part: tuple(amount) for part, *amount in found}

    @property
    def _is_final(self) -> bool:
        return self.replaces and "is_deleted" not in self.columns

    def _measures(self) -> str:
        if self._is_final:
            return "count()"
        if self.replaces:
            # A row that was withdrawn stays as its key.
            return "uniqExact(id)"
        sums = [name for name, kind in self.columns.items() if kind.startswith("SimpleAggregateFunction(sum,")]
        if sums:
            return ", ".join(f"sum(`{name}`)" for name in sums)
        return f"count(), sum(cityHash64({self.listed}))"


def names_in(name: str) -> set[str]:
    return {found for (found,) in client.execute(_NAMES, {"database": name})}


def tables_of(source: str) -> list[Table]:
    """Returns the tables to copy. Raises CannotMoveError unless both databases have the same ones, of this version."""
    if not source.isidentifier() or source == database():
        raise CannotMoveError(f"--from {source}: expected the name of another database than {database()}.")
    if not {"requests", _LEDGER} <= names_in(source):
        raise CannotMoveError(f"The server at CLICKHOUSE_URL has no request log in a database {source}.")
    theirs, ours = _tables(source), _tables(database())
    applied = [client.execute(_MIGRATIONS.format(table=one)) for one in (f"{source}.{_LEDGER}", _LEDGER)]
    differing = sorted(
        name
        for name in theirs.keys() | ours.keys()
        if name not in theirs or name not in ours or theirs[name].columns != ours[name].columns
    )
    if differing or applied[0] != applied[1]:
        what = f"table {differing[0]} is not the same" if differing else "not the same migrations were applied"
        raise CannotMoveError(
            f"In {source} and {database()} {what}: run `manage.py migrate_analytics` of this version on both."
        )
    return list(theirs.values())


def _tables(name: str) -> dict[str, Table]:
    values = {"database": name, "ledger": _LEDGER, "scratch": _SCRATCH}
    return {
        table: Table(table, name, "Replacing" in engine, key, dict(columns))
        for table, engine, key, columns in client.execute(_TABLES, values)
    }
