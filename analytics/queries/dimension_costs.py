"""Sums cost, requests and tokens by a dimension: a page of its keys by cost, and the largest in each interval.

The keys of a page are found first, from the two columns that order them; the figures are read for these keys alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from analytics.clickhouse import client
from analytics.queries import visible
from analytics.queries.dimensions import Dimension, rollups_of, source_of
from analytics.queries.rollup_ranges import PLANNED, Key, plain_rollups, same, totals, union
from analytics.queries.usage import BEGINNING, Interval

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Row = TypeVar("Row", bound=DataclassInstance)


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

    errors: int = 0
    cancelled: int = 0
    unpriced: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    latency_sum_ms: int = 0


Figures = TypeVar("Figures", CostRow, DimensionRow)


@dataclass(frozen=True)
class IntervalCostRow:
    """The cost of a key in the interval that begins at `start`."""

    start: datetime
    key: str
    requests: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: Decimal


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
class _Name:
    key: str
    keys: int


@dataclass(frozen=True)
class _Count:
    keys: int


_COSTS = ("requests", "prompt_tokens", "completion_tokens", "cost_usd")


def list_keys(scope: Scope, dimension: Dimension, *, limit: int, offset: int) -> tuple[int, list[str]]:
    """Returns the number of keys and one page of them, by falling cost, then falling requests, then key."""
    source, params = _union(scope, dimension, ("cost_usd", "requests"))
    order = "ORDER BY sum(f.cost_usd) DESC, sum(f.requests) DESC, f.key LIMIT {limit:UInt64} OFFSET {offset:UInt64}"
    sql = f"SELECT f.key AS key, count() OVER () AS keys FROM {source} AS f GROUP BY f.key {order}"
    found = _query(dimension, sql, params | {"limit": limit, "offset": offset}, row=_Name, name="spend.keys")
    if found or not offset:
        return (found[0].keys if found else 0), [row.key for row in found]
    source, params = _union(scope, dimension, ())
    sql = f"SELECT uniqExact(f.key) AS keys FROM {source} AS f"
    return _query(dimension, sql, params, row=_Count, name="spend.count")[0].keys, []


def figures_of(scope: Scope, dimension: Dimension, keys: Sequence[str]) -> tuple[Mapping[str, DimensionRow], CostRow]:
    """Returns the figures of those keys that had requests, and the cost of all requests together."""
    return visible.both_visible(
        scope.project_id, partial(_rows, scope, dimension, keys, row=DimensionRow), partial(_total, scope)
    )


def costs_of(scope: Scope, dimension: Dimension, keys: Sequence[str]) -> tuple[Mapping[str, CostRow], CostRow]:
    """Returns what those keys cost that had requests, and the cost of all requests together."""
    return visible.both_visible(
        scope.project_id, partial(_rows, scope, dimension, keys, row=CostRow), partial(_total, scope)
    )


def list_interval_costs(
    scope: Scope, dimension: Dimension, interval: Interval, keys: Sequence[str]
) -> list[IntervalCostRow]:
    """Returns what each of the keys cost in each interval in which it had requests."""
    beginning = Key(BEGINNING[interval], BEGINNING[interval])
    source, params = _union(scope, dimension, _COSTS, keys=keys, interval=interval, start=beginning)
    sql = (
        f"SELECT toDateTime64(f.start, 6, 'UTC') AS start, f.key AS key, {totals(*_COSTS)}"
        f" FROM {source} AS f GROUP BY f.start, f.key"
    )
    return _query(dimension, sql, params, row=IntervalCostRow, name="spend.intervals")


def _rows(scope: Scope, dimension: Dimension, keys: Sequence[str], *, row: type[Figures]) -> Mapping[str, Figures]:
    figures = [field.name for field in fields(row) if field.name != "key"]
    source, params = _union(scope, dimension, figures, keys=keys)
    sql = f"SELECT f.key AS key, {totals(*figures)} FROM {source} AS f GROUP BY f.key"
    return {found.key: found for found in _query(dimension, sql, params, row=row, name="spend.figures")}


def _total(scope: Scope) -> CostRow:
    rollups, keys = plain_rollups(scope.start, scope.end), {"key": same("''")}
    source, params = union(rollups, scope.start, scope.end, keys=keys, figures=_COSTS, operation=scope.operation)
    sql = f"SELECT '' AS key, {totals(*_COSTS)} FROM {source} AS f"
    values = {**params, "project": scope.project_id}
    return client.query(sql, values, row=CostRow, name="spend.totals", database_settings=PLANNED)[0]


def _union(
    scope: Scope,
    dimension: Dimension,
    figures: Sequence[str],
    *,
    keys: Sequence[str] | None = None,
    interval: Interval = Interval.DAY,
    **more: Key,
) -> tuple[str, dict[str, Any]]:
    of = source_of(dimension)
    where = "1" if keys is None else f"{of.key.rollup.format()} IN {{keys:Array(String)}}"
    source, params = union(
        rollups_of(dimension, scope.start, scope.end, interval),
        scope.start,
        scope.end,
        keys={"key": of.key, **more},
        figures=figures,
        where=where,
        where_request=of.where_request,
        operation=scope.operation,
    )
    if dimension is Dimension.METADATA:
        params["tag"] = scope.tag
    return source, {**params, "project": scope.project_id, **({} if keys is None else {"keys": list(keys)})}


def _query(dimension: Dimension, sql: str, params: Mapping[str, Any], *, row: type[Row], name: str) -> list[Row]:
    """Runs the query. One that names sessions leaves out those whose deletion is under way."""
    run = visible.query if dimension is Dimension.SESSION else client.query
    return run(sql, params, row=row, name=name, database_settings=PLANNED)
