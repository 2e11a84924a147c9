"""Finds a page of the keys of a dimension by the keys themselves.

A page is read at once with the sums over all keys. Users are so many that their page is found first, from what orders
it, and the figures are read for it alone.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from decimal import Decimal
from functools import partial
from typing import TypeVar

from analytics.queries.dimension_costs.figures import (
    COSTS,
    CostPage,
    CostRow,
    DimensionRow,
    Scope,
    query,
    rows_of,
    total_of,
    totals_of,
    union_of_rollups,
)
from analytics.queries.dimensions import Dimension
from analytics.queries.parallel import both
from analytics.queries.rollup_ranges import FIGURES, totals

_ORDER = "ORDER BY cost_usd DESC, requests DESC, key"
# The keys of the period before that are read beside the page, before it is known whose costs are compared.
_KEYS_BEFORE = 1000


@dataclass(frozen=True)
class _AllKeys:
    """The number of all keys and the cost of all their requests, which every row of a page carries."""

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


def page_at_once(scope: Scope, before: Scope, dimension: Dimension, limit: int, offset: int) -> CostPage:
    """Returns a page of a dimension of few keys: one query reads it with all sums, another the period `before`."""
    listed, listed_before = both(
        partial(_list_figures, scope, dimension, limit, offset, row=_ListedFigures),
        partial(_list_figures, before, dimension, _KEYS_BEFORE, 0, row=_ListedCost),
    )
    count = listed[0].keys if listed else 0
    total = listed[0].total if listed else CostRow("")
    if not listed and offset:
        count, total = _count(scope, dimension), total_of(scope)
    costs_before: dict[str, CostRow] = {row.key: row for row in listed_before}
    beyond = [row.key for row in listed if row.key not in costs_before]
    if beyond and listed_before and listed_before[0].keys > len(listed_before):
        costs_before |= rows_of(before, dimension, beyond, row=CostRow)
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
    source, params = union_of_rollups(scope, dimension, figures)
    beside = ", ".join(f"sum(sum(f.{name})) OVER () AS all_{name}" for name in COSTS)
    sql = (
        f"SELECT f.key AS key, {totals(*figures)}, count() OVER () AS keys, {beside} FROM {source} AS f GROUP BY f.key"
        f" {_ORDER} LIMIT {{limit:UInt64}} OFFSET {{offset:UInt64}}"
    )
    return query(dimension, sql, params | {"limit": limit, "offset": offset}, row=row, name="spend.page")


def page_by_keys(scope: Scope, before: Scope, dimension: Dimension, limit: int, offset: int) -> CostPage:
    """Returns a page of a dimension of many keys, whose figures are read for the page alone."""
    (total, total_before), (count, keys) = both(
        partial(totals_of, scope, before),
        partial(list_names, scope, dimension, limit=limit, offset=offset),
    )
    figures, costs_before = both(
        partial(rows_of, scope, dimension, keys, row=DimensionRow),
        partial(rows_of, before, dimension, keys, row=CostRow),
    )
    return CostPage(count, keys, figures, costs_before, total, total_before)


def list_names(scope: Scope, dimension: Dimension, *, limit: int, offset: int) -> tuple[int, list[str]]:
    """Returns the number of keys and one page of them."""
    source, params = union_of_rollups(scope, dimension, ("cost_usd", "requests"))
    order = "ORDER BY sum(f.cost_usd) DESC, sum(f.requests) DESC, f.key LIMIT {limit:UInt64} OFFSET {offset:UInt64}"
    sql = f"SELECT f.key AS key, count() OVER () AS keys FROM {source} AS f GROUP BY f.key {order}"
    found = query(dimension, sql, params | {"limit": limit, "offset": offset}, row=_Name, name="spend.keys")
    if found or not offset:
        return (found[0].keys if found else 0), [row.key for row in found]
    return _count(scope, dimension), []


def _count(scope: Scope, dimension: Dimension) -> int:
    source, params = union_of_rollups(scope, dimension, ())
    sql = f"SELECT uniqExact(f.key) AS keys FROM {source} AS f"
    return query(dimension, sql, params, row=_Count, name="spend.count")[0].keys
