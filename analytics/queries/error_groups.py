"""Groups the errors in a range of time by provider, model and code, with the number in each interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from analytics.clickhouse import client
from analytics.queries import visible
from analytics.queries.request_filters import RequestFilter, conditions_of
from analytics.queries.rollup_ranges import ERROR_KIND_HOURS, PLANNED, Key, same, totals, union
from analytics.queries.usage import BEGINNING, Interval


@dataclass(frozen=True)
class ErrorGroupRow:
    """One kind of error of a model; provider and model are empty when the request came to none. `kind` is the hash of
    these four texts, `groups` and `errors` count those of the whole range."""

    kind: int
    provider: str
    model: str
    error_type: str
    error_code: str
    status_codes: list[int]
    requests: int
    first_at: datetime
    last_at: datetime
    groups: int
    errors: int


@dataclass(frozen=True)
class ErrorIntervalRow:
    """The errors of a kind in the interval that begins at `start`."""

    kind: int
    start: datetime
    requests: int


@dataclass(frozen=True)
class ErrorSampleRow:
    """A request that failed with an error of this kind."""

    kind: int
    request_id: UUID


@dataclass(frozen=True)
class _Totals:
    groups: int
    errors: int


EVERYTHING = RequestFilter()
FIELDS = ("error_code", "error_type", "provider", "model", "status_code", "operation")
"""The fields of a filter that groups of errors are told apart by."""

_TEXTS = ("provider", "model", "error_type", "error_code")
_KEYS = {name: same(f"toString(t.{name})") for name in _TEXTS}
_KIND = f"cityHash64({', '.join(f'toString(t.{name})' for name in _TEXTS)})"
_FAILED = "t.outcome IN ('error', 'interrupted')"
_FIGURES = ("requests", "first_at", "last_at")


def list_error_groups(
    project_id: UUID,
    start: datetime,
    end: datetime,
    *,
    limit: int,
    offset: int,
    operation: str = "",
    filters: RequestFilter = EVERYTHING,
) -> tuple[_Totals, list[ErrorGroupRow]]:
    """Returns the numbers of groups and errors, and one page of the groups: the most frequent first, then by names. Of
    `filters` only the fields in FIELDS may be set."""
    keys = {**_KEYS, "kind": same(_KIND), "status_code": same("t.status_code")}
    given = conditions_of(filters)
    source, params = union(
        [ERROR_KIND_HOURS],
        start,
        end,
        keys=keys,
        figures=_FIGURES,
        where=" AND ".join(["1", *given.conditions.values()]),
        where_request=_FAILED,
        operation=operation,
    )
    grouped = (
        f"SELECT f.kind AS kind, {', '.join(f'f.{name} AS {name}' for name in _TEXTS)},"
        f" arraySort(groupUniqArray(f.status_code)) AS status_codes, {totals(*_FIGURES)}"
        f" FROM {source} AS f GROUP BY f.kind, {', '.join(f'f.{name}' for name in _TEXTS)}"
    )
    values = {**params, **given.values, "project": project_id}
    sql = (
        f"SELECT *, count() OVER () AS groups, sum(requests) OVER () AS errors FROM ({grouped})"
        f" ORDER BY requests DESC, {', '.join(_TEXTS)} LIMIT {{limit:UInt64}} OFFSET {{offset:UInt64}}"
    )
    page = {"limit": limit, "offset": offset}
    rows = client.query(sql, values | page, row=ErrorGroupRow, name="errors.groups", database_settings=PLANNED)
    if rows:
        return _Totals(rows[0].groups, rows[0].errors), rows
    sql = f"SELECT count() AS groups, sum(requests) AS errors FROM ({grouped})"
    return client.query(sql, values, row=_Totals, name="errors.count", database_settings=PLANNED)[0], []


def list_error_intervals(
    project_id: UUID, start: datetime, end: datetime, interval: Interval, kinds: Sequence[int], *, operation: str = ""
) -> list[ErrorIntervalRow]:
    """Returns the number of errors of each kind in each interval that has any."""
    source, params = union(
        () if interval is Interval.MINUTE else [ERROR_KIND_HOURS],
        start,
        end,
        keys={"kind": same(_KIND), "start": Key(BEGINNING[interval], BEGINNING[interval])},
        figures=["requests"],
        where=f"{_KIND} IN {{kinds:Array(UInt64)}}",
        where_request=_FAILED,
        operation=operation,
    )
    sql = (
        f"SELECT f.kind AS kind, toDateTime64(f.start, 6, 'UTC') AS start, {totals('requests')} FROM {source} AS f"
        " GROUP BY f.kind, f.start"
    )
    values = {**params, "project": project_id, "kinds": list(kinds)}
    return client.query(sql, values, row=ErrorIntervalRow, name="errors.intervals", database_settings=PLANNED)


def find_error_samples(project_id: UUID, groups: Sequence[ErrorGroupRow]) -> dict[int, UUID]:
    """Returns by kind the latest request of each group, as far as it is still stored.

    The times are looked up by the primary key of `requests`, so that few rows are read.
    """
    sql = (
        f"SELECT {_KIND} AS kind, any(t.request_id) AS request_id FROM requests AS t"
        " PREWHERE t.project_id = {project:UUID} AND t.ts IN {times:Array(DateTime64(6, 'UTC'))}"
        f" WHERE {_FAILED} GROUP BY kind"
    )
    params = {"project": project_id, "times": [group.last_at for group in groups]}
    rows = visible.query(sql, params, row=ErrorSampleRow, name="errors.samples", database_settings=PLANNED)
    return {row.kind: row.request_id for row in rows}
