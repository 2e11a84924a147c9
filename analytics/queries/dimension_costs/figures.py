"""The scope and the rows of cost by a dimension, and the queries for the figures of given keys and of all requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from analytics.clickhouse import client
from analytics.queries import visible
from analytics.queries.dimensions import Dimension, rollups_of, source_of
from analytics.queries.rollup_ranges import IS_EARLIER, PLANNED, Key, plain_rollups, same, totals, union
from analytics.queries.usage import Interval

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Row = TypeVar("Row", bound=DataclassInstance)


@dataclass(frozen=True)
class Scope:
    """The requests of a project from `start` to `end`, both included, of one `operation` unless it is empty. `tag` is
    the attribute by which the dimension METADATA splits."""

    project_id: UUID
    start: datetime
    end: datetime
    operation: str = ""
    tag: str = ""


@dataclass(frozen=True)
class CostRow:
    """The cost of one key of a dimension, or of all requests under the empty key. The server plans a query column by
    column, which takes most of its time: a period that is only compared is read without the other figures."""

    key: str
    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: Decimal = Decimal(0)


@dataclass(frozen=True)
class DimensionRow(CostRow):
    """All figures of one key of a dimension."""

    batched: int = 0
    errors: int = 0
    cancelled: int = 0
    unpriced: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    latency_sum_ms: int = 0


Figures = TypeVar("Figures", CostRow, DimensionRow)


@dataclass(frozen=True)
class CostPage:
    """A page of the `count` keys of a dimension: the figures of those that had requests, the cost of those that had
    some in the period before, and the cost of all requests of either period."""

    count: int
    keys: Sequence[str]
    figures: Mapping[str, DimensionRow]
    costs_before: Mapping[str, CostRow]
    total: CostRow
    total_before: CostRow


COSTS = ("requests", "prompt_tokens", "completion_tokens", "cost_usd")
SESSION_HASH = Key("t.session_hash", "cityHash64(t.session_id)")


def ordered(rows: Iterable[CostRow]) -> list[str]:
    """Returns the keys in the order of all pages: by falling cost, then falling requests, then key."""
    return [row.key for row in sorted(rows, key=lambda row: (-row.cost_usd, -row.requests, row.key))]


def rows_of(
    scope: Scope,
    dimension: Dimension,
    keys: Sequence[str] | None = None,
    *,
    session_hashes: Sequence[int] | None = None,
    row: type[Figures],
) -> Mapping[str, Figures]:
    """Returns the figures that `row` has, of all keys or of the given keys or sessions that had requests, by key."""
    figures = [field.name for field in fields(row) if field.name != "key"]
    source, params = union_of_rollups(scope, dimension, figures, keys=keys, session_hashes=session_hashes)
    sql = f"SELECT f.key AS key, {totals(*figures)} FROM {source} AS f GROUP BY f.key"
    return {found.key: found for found in query(dimension, sql, params, row=row, name="spend.figures")}


def total_of(scope: Scope) -> CostRow:
    """Returns the cost of all requests."""
    rollups, keys = plain_rollups(scope.start, scope.end), {"key": same("''")}
    source, params = union(rollups, scope.start, scope.end, keys=keys, figures=COSTS, operation=scope.operation)
    sql = f"SELECT '' AS key, {totals(*COSTS)} FROM {source} AS f"
    values = {**params, "project": scope.project_id}
    return client.query(sql, values, row=CostRow, name="spend.totals", database_settings=PLANNED)[0]


@dataclass(frozen=True)
class _PeriodCost(CostRow):
    is_earlier: int = 0


def totals_of(scope: Scope, before: Scope) -> tuple[CostRow, CostRow]:
    """Returns the cost of all requests in `scope` and in the period `before` it."""
    keys = {"key": same("''"), "is_earlier": IS_EARLIER}
    source, params = union(
        plain_rollups(scope.start, scope.end),
        scope.start,
        scope.end,
        keys=keys,
        figures=COSTS,
        operation=scope.operation,
        earlier=(before.start, before.end),
    )
    sql = f"SELECT '' AS key, f.is_earlier AS is_earlier, {totals(*COSTS)} FROM {source} AS f GROUP BY f.is_earlier"
    values = {**params, "project": scope.project_id}
    rows = client.query(sql, values, row=_PeriodCost, name="spend.totals", database_settings=PLANNED)
    found = {row.is_earlier: row for row in rows}
    return found.get(0, CostRow("")), found.get(1, CostRow(""))


def union_of_rollups(
    scope: Scope,
    dimension: Dimension,
    figures: Sequence[str],
    *,
    keys: Sequence[str] | None = None,
    session_hashes: Sequence[int] | None = None,
    interval: Interval = Interval.DAY,
    **more: Key,
) -> tuple[str, dict[str, Any]]:
    """Returns a subquery over the rollups and requests of the scope, and its parameters. Its columns are `key`, those
    of `more` and the figures; several of its rows may have the same key."""
    of = source_of(dimension)
    where = "1" if keys is None else f"{of.key.rollup.format()} IN {{keys:Array(String)}}"
    where_rollup, where_request = "1" if keys is None else of.of_keys, of.where_request
    if session_hashes is not None:
        where_rollup = f"{SESSION_HASH.rollup} IN {{hashes:Array(UInt64)}}"
        where_request += f" AND {SESSION_HASH.request} IN {{hashes:Array(UInt64)}}"
    source, params = union(
        rollups_of(dimension, scope.start, scope.end, interval),
        scope.start,
        scope.end,
        keys={"key": of.key, **more},
        figures=figures,
        where=where,
        where_rollup=where_rollup,
        where_request=where_request,
        operation=scope.operation,
    )
    if session_hashes is not None:
        params["hashes"] = list(session_hashes)
    if dimension is Dimension.METADATA:
        params["tag"] = scope.tag
    return source, {**params, "project": scope.project_id, **({} if keys is None else {"keys": list(keys)})}


def query(dimension: Dimension, sql: str, params: Mapping[str, Any], *, row: type[Row], name: str) -> list[Row]:
    """Runs the query. One that names sessions leaves out those whose deletion is under way."""
    run = visible.query if dimension is Dimension.SESSION else client.query
    return run(sql, params, row=row, name=name, database_settings=PLANNED)
