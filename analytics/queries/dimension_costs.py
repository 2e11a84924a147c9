"""Sums cost, requests and tokens by a dimension: a page of its keys by cost, and the largest in each interval.

The keys of a page are found first, from the two columns that order them; the figures are read for these keys alone.
Sessions are as many as requests, nearly: the hashes of the dearest are found before their keys.
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
class CostPage:
    """A page of the `count` keys of a dimension: the figures of those that had requests, the cost of those that had
    some in the period before, and the cost of all requests of either period."""

    count: int
    keys: Sequence[str]
    figures: Mapping[str, DimensionRow]
    costs_before: Mapping[str, CostRow]
    total: CostRow
    total_before: CostRow


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


@dataclass(frozen=True)
class _HashedCost:
    """The cost of the session with this hash; `sessions` is the number of all sessions."""

    hash: int
    cost_usd: Decimal
    sessions: int


_COSTS = ("requests", "prompt_tokens", "completion_tokens", "cost_usd")
# The sessions that are read beyond the end of a page, because those of the same cost as its last one may belong to it.
_SESSIONS_BEYOND = 200
_HASH = Key("t.session_hash", "cityHash64(t.session_id)")


def list_page(scope: Scope, before: Scope, dimension: Dimension, *, limit: int, offset: int) -> CostPage:
    """Returns a page of the keys with a request in `scope`, by falling cost, then falling requests, then key."""
    (total, total_before), (count, keys) = visible.both_visible(
        scope.project_id,
        lambda: (_total(scope), _total(before)),
        partial(list_keys, scope, dimension, limit=limit, offset=offset),
    )
    figures, costs_before = visible.both_visible(
        scope.project_id,
        partial(_rows, scope, dimension, keys, row=DimensionRow),
        partial(_rows, before, dimension, keys, row=CostRow),
    )
    return CostPage(count, keys, figures, costs_before, total, total_before)


def list_keys(scope: Scope, dimension: Dimension, *, limit: int, offset: int) -> tuple[int, list[str]]:
    """Returns the number of keys and one page of them, by falling cost, then falling requests, then key."""
    if dimension is not Dimension.SESSION:
        return _list_keys(scope, dimension, limit=limit, offset=offset)
    dearest = _dearest_sessions(scope, limit=offset + limit + _SESSIONS_BEYOND)
    count = dearest[0].sessions if dearest else 0
    if len(dearest) <= offset:
        return count, []
    hashes: list[int] | None = [one.hash for one in dearest]
    if len(dearest) > offset + limit:
        least = dearest[offset + limit - 1].cost_usd
        hashes = [one.hash for one in dearest if one.cost_usd >= least] if dearest[-1].cost_usd < least else None
    _, keys = _list_keys(scope, dimension, limit=limit, offset=offset, session_hashes=hashes)
    return count, keys


def _dearest_sessions(scope: Scope, *, limit: int) -> list[_HashedCost]:
    """Returns sessions by falling cost. They are told apart by their hashes, which is half the work of their names."""
    source, params = union(
        rollups_of(Dimension.SESSION, scope.start, scope.end),
        scope.start,
        scope.end,
        keys={"hash": _HASH},
        figures=("cost_usd",),
        where_request=source_of(Dimension.SESSION).where_request,
        operation=scope.operation,
    )
    sql = (
        f"SELECT f.hash AS hash, {totals('cost_usd')}, count() OVER () AS sessions FROM {source} AS f"
        " GROUP BY f.hash ORDER BY cost_usd DESC LIMIT {limit:UInt64}"
    )
    values = {**params, "project": scope.project_id, "limit": limit}
    return _query(Dimension.SESSION, sql, values, row=_HashedCost, name="spend.dearest")


def _list_keys(
    scope: Scope, dimension: Dimension, *, limit: int, offset: int, session_hashes: Sequence[int] | None = None
) -> tuple[int, list[str]]:
    source, params = _union(scope, dimension, ("cost_usd", "requests"), session_hashes=session_hashes)
    order = "ORDER BY sum(f.cost_usd) DESC, sum(f.requests) DESC, f.key LIMIT {limit:UInt64} OFFSET {offset:UInt64}"
    sql = f"SELECT f.key AS key, count() OVER () AS keys FROM {source} AS f GROUP BY f.key {order}"
    found = _query(dimension, sql, params | {"limit": limit, "offset": offset}, row=_Name, name="spend.keys")
    if found or not offset:
        return (found[0].keys if found else 0), [row.key for row in found]
    source, params = _union(scope, dimension, ())
    sql = f"SELECT uniqExact(f.key) AS keys FROM {source} AS f"
    return _query(dimension, sql, params, row=_Count, name="spend.count")[0].keys, []


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
    session_hashes: Sequence[int] | None = None,
    interval: Interval = Interval.DAY,
    **more: Key,
) -> tuple[str, dict[str, Any]]:
    of = source_of(dimension)
    where = "1" if keys is None else f"{of.key.rollup.format()} IN {{keys:Array(String)}}"
    where_rollup, where_request = "1" if keys is None else of.of_keys, of.where_request
    if session_hashes is not None:
        where_rollup = f"{_HASH.rollup} IN {{hashes:Array(UInt64)}}"
        where_request += f" AND {_HASH.request} IN {{hashes:Array(UInt64)}}"
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


def _query(dimension: Dimension, sql: str, params: Mapping[str, Any], *, row: type[Row], name: str) -> list[Row]:
    """Runs the query. One that names sessions leaves out those whose deletion is under way."""
    run = visible.query if dimension is Dimension.SESSION else client.query
    return run(sql, params, row=row, name=name, database_settings=PLANNED)
