"""Sums cost, requests and tokens by a dimension: a page of its keys by cost, and the largest in each interval.

A page is read at once with the sums over all keys. Users and sessions are so many that the page is found first, from
what orders them, and the figures are read for it alone; of sessions, nearly as many as requests, by their hashes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from uuid import UUID

from analytics.clickhouse import client
from analytics.queries import visible
from analytics.queries.dimensions import Dimension, rollups_of, source_of
from analytics.queries.operations import condition
from analytics.queries.parallel import both
from analytics.queries.rollup_ranges import (
    FIGURES,
    PLANNED,
    SESSION_DAYS,
    TICK,
    Key,
    clamp,
    plain_rollups,
    same,
    split,
    totals,
    union,
)
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
class _AllKeys:
    """The number of all keys and the cost of all their requests, beside each row of a page."""

    keys: int = 0
    all_requests: int = 0
    all_prompt_tokens: int = 0
    all_completion_tokens: int = 0
    all_cost_usd: Decimal = Decimal(0)

    @property
    def total(self) -> CostRow:
        return CostRow("", self.all_requests, self.all_prompt_tokens, self.all_completion_tokens, self.all_cost_usd)


@dataclass(frozen=True)
class _ListedCost(_AllKeys, CostRow):
    """The cost of one key of a page."""


@dataclass(frozen=True)
class _ListedFigures(_AllKeys, DimensionRow):
    """All figures of one key of a page."""


Listed = TypeVar("Listed", _ListedCost, _ListedFigures)


@dataclass(frozen=True)
class _Name:
    key: str
    keys: int


@dataclass(frozen=True)
class _Count:
    keys: int


class _HashedCost(NamedTuple):
    """The cost of the session with this hash."""

    hash: int
    cost_usd: Decimal


@dataclass(frozen=True)
class _Dearest:
    sessions: int
    dearest: list[tuple[int, Decimal]]


_ORDER = "ORDER BY cost_usd DESC, requests DESC, key"
_COSTS = ("requests", "prompt_tokens", "completion_tokens", "cost_usd")
# The sessions that are read beyond the end of a page, because those of the same cost as its last one may belong to it.
_SESSIONS_BEYOND = 200
_HASH = Key("t.session_hash", "cityHash64(t.session_id)")
# The keys of the period before that are read beside the page, before it is known whose costs are compared.
_KEYS_BEFORE = 1000
# Half a million sessions are read by one thread, for which dividing them among 256 tables is work for nothing.
_ONE_TABLE = {**PLANNED, "group_by_two_level_threshold": 0, "group_by_two_level_threshold_bytes": 0}
_DAYS_OF_LEAST = timedelta(days=2)
_LEAST = """ifNull((
    SELECT sum(t.cost_usd) AS cost FROM session_days AS t
    PREWHERE t.project_id = {{project:UUID}} AND t.day >= {{least_from:Date}} AND t.day < {{least_until:Date}}
        AND {of_operation}
    GROUP BY t.session_hash ORDER BY cost DESC LIMIT 1 OFFSET {{beyond:UInt64}}
), toDecimal128(0, 10))"""


def list_page(scope: Scope, before: Scope, dimension: Dimension, *, limit: int, offset: int) -> CostPage:
    """Returns a page of the keys with a request in `scope`, by falling cost, then falling requests, then key."""
    if dimension is Dimension.SESSION:
        return _page_of_sessions(scope, before, limit, offset)
    if dimension is Dimension.USER:
        return _page_by_keys(scope, before, dimension, limit, offset)
    return _page_at_once(scope, before, dimension, limit, offset)


def _page_at_once(scope: Scope, before: Scope, dimension: Dimension, limit: int, offset: int) -> CostPage:
    listed, listed_before = both(
        partial(_list_figures, scope, dimension, limit, offset, row=_ListedFigures),
        partial(_list_figures, before, dimension, _KEYS_BEFORE, 0, row=_ListedCost),
    )
    count = listed[0].keys if listed else 0
    total = listed[0].total if listed else CostRow("")
    if not listed and offset:
        count, total = _count(scope, dimension), _total(scope)
    costs_before: dict[str, CostRow] = {row.key: row for row in listed_before}
    beyond = [row.key for row in listed if row.key not in costs_before]
    if beyond and listed_before and listed_before[0].keys > len(listed_before):
        costs_before |= _rows(before, dimension, beyond, row=CostRow)
    return CostPage(
        count,
        [row.key for row in listed],
        {row.key: row for row in listed},
        costs_before,
        total,
        listed_before[0].total if listed_before else CostRow(""),
    )


def _list_figures(scope: Scope, dimension: Dimension, limit: int, offset: int, *, row: type[Listed]) -> list[Listed]:
    """Returns a page of the keys with their figures, each beside the sums of all keys."""
    figures = [field.name for field in fields(row) if field.name in FIGURES]
    source, params = _union(scope, dimension, figures)
    beside = ", ".join(f"sum(sum(f.{name})) OVER () AS all_{name}" for name in _COSTS)
    sql = (
        f"SELECT f.key AS key, {totals(*figures)}, count() OVER () AS keys, {beside} FROM {source} AS f GROUP BY f.key"
        f" {_ORDER} LIMIT {{limit:UInt64}} OFFSET {{offset:UInt64}}"
    )
    return _query(dimension, sql, params | {"limit": limit, "offset": offset}, row=row, name="spend.page")


def _page_by_keys(scope: Scope, before: Scope, dimension: Dimension, limit: int, offset: int) -> CostPage:
    (total, total_before), (count, keys) = both(
        lambda: (_total(scope), _total(before)),
        partial(_list_keys, scope, dimension, limit=limit, offset=offset),
    )
    figures, costs_before = both(
        partial(_rows, scope, dimension, keys, row=DimensionRow),
        partial(_rows, before, dimension, keys, row=CostRow),
    )
    return CostPage(count, keys, figures, costs_before, total, total_before)


def _page_of_sessions(scope: Scope, before: Scope, limit: int, offset: int) -> CostPage:
    (total, total_before), (count, dearest) = visible.both_visible(
        scope.project_id,
        lambda: (_total(scope), _total(before)),
        partial(_dearest_sessions, scope, limit=offset + limit + _SESSIONS_BEYOND),
    )
    found = _of_page(dearest, limit, offset)
    if found is None:
        _, keys = _list_keys(scope, Dimension.SESSION, limit=limit, offset=offset)
        chosen: dict[str, Any] = {"keys": keys}
    else:
        chosen = {"session_hashes": found.hashes}
    figures, costs_before = visible.both_visible(
        scope.project_id,
        partial(_rows, scope, Dimension.SESSION, row=DimensionRow, **chosen),
        partial(_rows, before, Dimension.SESSION, row=CostRow, **chosen),
    )
    if found is not None:
        keys = _ordered(figures.values())[found.skipped : found.skipped + limit]
    return CostPage(count, keys, figures, costs_before, total, total_before)


def _ordered(rows: Iterable[CostRow]) -> list[str]:
    return [row.key for row in sorted(rows, key=lambda row: (-row.cost_usd, -row.requests, row.key))]


def list_keys(scope: Scope, dimension: Dimension, *, limit: int, offset: int) -> list[str]:
    """Returns a page of the keys, by falling cost, then falling requests, then key."""
    if dimension is Dimension.SESSION:
        _, dearest = _dearest_sessions(scope, limit=offset + limit + _SESSIONS_BEYOND)
        found = _of_page(dearest, limit, offset)
        if found is not None:
            rows = _rows(scope, dimension, session_hashes=found.hashes, row=CostRow)
            return _ordered(rows.values())[found.skipped : found.skipped + limit]
    return _list_keys(scope, dimension, limit=limit, offset=offset)[1]


@dataclass(frozen=True)
class _SessionsOfPage:
    """The hashes of the sessions among which a page lies, after the first `skipped` ones of them."""

    hashes: Sequence[int]
    skipped: int


def _of_page(dearest: Sequence[_HashedCost], limit: int, offset: int) -> _SessionsOfPage | None:
    """Returns the sessions of the page and those that cost the same as its first or its last; None when those are more
    than were read."""
    page = dearest[offset : offset + limit]
    if not page:
        return _SessionsOfPage([], 0)
    most, least = page[0].cost_usd, page[-1].cost_usd
    if len(dearest) == offset + limit + _SESSIONS_BEYOND and dearest[-1].cost_usd == least:
        return None
    before = sum(one.cost_usd > most for one in dearest)
    return _SessionsOfPage([one.hash for one in dearest if most >= one.cost_usd >= least], offset - before)


def _dearest_sessions(scope: Scope, *, limit: int) -> tuple[int, Sequence[_HashedCost]]:
    """Returns the number of sessions, and some by falling cost. They are told apart by their hashes, which is half the
    work of their names."""
    source, params = union(
        rollups_of(Dimension.SESSION, scope.start, scope.end),
        scope.start,
        scope.end,
        keys={"hash": _HASH},
        figures=("cost_usd",),
        where_request=source_of(Dimension.SESSION).where_request,
        operation=scope.operation,
    )
    least, values = _least_cost(scope, limit)
    sql = f"""
        SELECT count() AS sessions, arraySlice(
            arrayReverseSort(one -> one.2, groupArrayIf((g.hash, g.cost), g.cost >= {least})), 1, {{limit:UInt64}}
        ) AS dearest
        FROM (SELECT f.hash AS hash, {FIGURES["cost_usd"].total} AS cost FROM {source} AS f GROUP BY f.hash) AS g
    """
    values |= {**params, "project": scope.project_id, "limit": limit}
    [found] = visible.query(sql, values, row=_Dearest, name="spend.dearest", database_settings=_ONE_TABLE)
    return found.sessions, [_HashedCost(*one) for one in found.dearest]


def _least_cost(scope: Scope, limit: int) -> tuple[str, dict[str, Any]]:
    """Returns the SQL of a cost that `limit` sessions have reached, with its parameters: what as many cost in the last
    whole days alone. Only the others have to be put in order."""
    [whole], _ = split(clamp(scope.start), clamp(scope.end + TICK), [SESSION_DAYS.unit])
    if not whole:
        return "0", {}
    [(first, until)] = whole
    begin = max(first, until - _DAYS_OF_LEAST)
    params = {"least_from": begin.date(), "least_until": until.date(), "beyond": limit - 1}
    return _LEAST.format(of_operation=condition(scope.operation)), params


def _list_keys(scope: Scope, dimension: Dimension, *, limit: int, offset: int) -> tuple[int, list[str]]:
    """Returns the number of keys and one page of them."""
    source, params = _union(scope, dimension, ("cost_usd", "requests"))
    order = "ORDER BY sum(f.cost_usd) DESC, sum(f.requests) DESC, f.key LIMIT {limit:UInt64} OFFSET {offset:UInt64}"
    sql = f"SELECT f.key AS key, count() OVER () AS keys FROM {source} AS f GROUP BY f.key {order}"
    found = _query(dimension, sql, params | {"limit": limit, "offset": offset}, row=_Name, name="spend.keys")
    if found or not offset:
        return (found[0].keys if found else 0), [row.key for row in found]
    return _count(scope, dimension), []


def _count(scope: Scope, dimension: Dimension) -> int:
    source, params = _union(scope, dimension, ())
    sql = f"SELECT uniqExact(f.key) AS keys FROM {source} AS f"
    return _query(dimension, sql, params, row=_Count, name="spend.count")[0].keys


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


def _rows(
    scope: Scope,
    dimension: Dimension,
    keys: Sequence[str] | None = None,
    *,
    session_hashes: Sequence[int] | None = None,
    row: type[Figures],
) -> Mapping[str, Figures]:
    figures = [field.name for field in fields(row) if field.name != "key"]
    source, params = _union(scope, dimension, figures, keys=keys, session_hashes=session_hashes)
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
