"""The rollups, and the SELECT that computes each again from the requests.

A rollup is an AggregatingMergeTree table that a view `<table>_mv` fills from `ingest`. Its expected content is the
view's own SELECT, read from the store and run on `requests` instead, so there is no second text that could differ. A
late rollup is filled by `<table>_figures_mv` from `ingest_figures` (`late_figures`), and `<table>_mv` is a plain view
with the same text. A request's `retention_days` follow from its day of expiry.

A unit of a rollup is one project's rows with one day of expiry (`drop_date`). Every rollup has that column in its key
and is partitioned by it, so it never mixes rows that expire at different times.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from analytics.clickhouse import client

_SOURCE = re.compile(r"\bFROM (?:`?\w+`?\.)?`?ingest`? AS i\b")
_ROWS = """FROM (
    SELECT * EXCEPT drop_date, toUInt16(drop_date - toDate(ts, 'UTC')) AS retention_days FROM requests AS i
    WHERE project_id = {{project:UUID}} AND drop_date IN {{units:Array(Date)}}
        AND ts >= toDateTime64({{first:Date}}, 6, 'UTC') AND ts < toDateTime64({{last:Date}} + 1, 6, 'UTC'){condition}
) AS i"""
# Each key column has a condition for the rows that name certain sessions or users, of a rollup and of its requests
# alike. The first of these columns that is in a rollup's key counts.
_PERSONS = {"session_id": "session_id IN {sessions:Array(String)}", "user_id": "user_id IN {users:Array(String)}"}


@dataclass(frozen=True)
class Column:
    name: str
    type: str


@dataclass(frozen=True)
class Rollup:
    table: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    select: str

    @property
    def names_persons(self) -> bool:
        return any(column in self.key for column in _PERSONS)

    @property
    def persons(self) -> str:
        """The condition for rows that name `{sessions}` or `{users}`. It is valid for `requests` too."""
        return next(condition for column, condition in _PERSONS.items() if column in self.key)

    def select_again(self, condition: str = "") -> str:
        """Returns the SELECT of the expected rows, with parameters `{project}`, `{units}`, `{first}` and `{last}`,
        which are days of requests."""
        rows = _ROWS.format(condition=f" AND {condition}" if condition else "")
        text, replaced = _SOURCE.subn(lambda _: rows, self.select)
        if replaced != 1:
            raise ValueError(f"the view of {self.table} does not read from ingest AS i")
        return text


@dataclass(frozen=True)
class _Table:
    name: str
    sorting_key: str
    select: str
    columns: list[tuple[str, str]]


_TABLES = """
SELECT t.name AS name, t.sorting_key AS sorting_key, v.as_select AS select, c.columns AS columns
FROM system.tables AS t
INNER JOIN (SELECT name, as_select FROM system.tables WHERE database = currentDatabase()) AS v
    ON v.name = concat(t.name, '_mv')
INNER JOIN (
    SELECT table, groupArray((name, type)) AS columns FROM (
        SELECT o.table AS table, o.name AS name, o.type AS type, f.table AS view
        FROM system.columns AS o
        INNER JOIN system.columns AS f
            ON f.database = o.database AND f.table = concat(o.table, '_mv') AND f.name = o.name
        WHERE o.database = currentDatabase() ORDER BY o.table, o.position
    ) GROUP BY table
) AS c ON c.table = t.name
WHERE t.database = currentDatabase() AND t.engine LIKE '%AggregatingMergeTree'
ORDER BY t.name
"""


def list_rollups() -> list[Rollup]:
    rollups = [
        Rollup(
            table=found.name,
            key=tuple(found.sorting_key.split(", ")),
            columns=tuple(Column(name, kind) for name, kind in found.columns),
            select=found.select,
        )
        for found in client.query(_TABLES, {}, row=_Table, name="rollups.list")
    ]
    for rollup in rollups:
        if not {"project_id", "drop_date"} <= set(rollup.key):
            raise ValueError(f"{rollup.table} has no project_id and drop_date in its key")
    return rollups
