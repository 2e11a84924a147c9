"""Finds a page of a dimension's keys by the keys themselves.

A page is read at once with the sums over all keys. Users are so many that their page is found first, by the columns
that order it, and the figures are read only for the page.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import TypeVar

from analytics.queries.dimension_costs.figures import (
    NO_COSTS,
    CostPage,
    KeyCosts,
    KeySums,
    rows_of,
    run_of,
    total_of,
    totals_of,
    union_of_rollups,
)
from analytics.queries.dimensions import Dimension
from analytics.queries.parallel import both
from analytics.queries.summed import BY_COST, Costs, Scope, count_keys, summed

_PAGE = f"{BY_COST}, key LIMIT {{limit:UInt64}} OFFSET {{offset:UInt64}}"
# The keys of the period before that are read beside the page, before it is known whose costs are compared.
_KEYS_BEFORE = 1000


@dataclass(frozen=True)
class _ListedCosts(KeyCosts):
    keys: int
    all: tuple[int, int, Decimal]


@dataclass(frozen=True)
class _ListedSums(KeySums):
    keys: int
    all: tuple[int, int, Decimal]


Listed = TypeVar("Listed", _ListedCosts, _ListedSums)
_BESIDE = {
    "keys": "count() OVER ()",
    "all": "(sum(requests) OVER (), sum(prompt_tokens + completion_tokens) OVER (), sum(cost_usd) OVER ())",
}


@dataclass(frozen=True)
class _Name:
    key: str
    keys: int


def page_at_once(scope: Scope, before: Scope, dimension: Dimension, limit: int, offset: int) -> CostPage:
    listed, listed_before = both(
        partial(_list, scope, dimension, limit, offset, row=_ListedSums),
        partial(_list, before, dimension, _KEYS_BEFORE, 0, row=_ListedCosts),
    )
    count = listed[0].keys if listed else 0
    total = Costs(*listed[0].all) if listed else NO_COSTS
    if not listed and offset:
        count, total = _count(scope, dimension), total_of(scope)
    costs_before: dict[str, KeyCosts] = {row.key: row for row in listed_before}
    beyond = [row.key for row in listed if row.key not in costs_before]
    if beyond and listed_before and listed_before[0].keys > len(listed_before):
        costs_before |= rows_of(before, dimension, beyond, row=KeyCosts)
    return CostPage(
        count,
        [row.key for row in listed],
        {row.key: row for row in listed},
        costs_before,
        total,
        Costs(*listed_before[0].all) if listed_before else NO_COSTS,
    )


def _list(scope: Scope, dimension: Dimension, limit: int, offset: int, *, row: type[Listed]) -> list[Listed]:
    return summed(
        row,
        partial(union_of_rollups, scope, dimension),
        by=["key"],
        outer=_BESIDE,
        tail=_PAGE,
        values={"limit": limit, "offset": offset},
        run=run_of(dimension),
        name="spend.page",
    )


def page_by_keys(scope: Scope, before: Scope, dimension: Dimension, limit: int, offset: int) -> CostPage:
    (total, total_before), (count, keys) = both(
        partial(totals_of, scope, before),
        partial(list_names, scope, dimension, limit=limit, offset=offset),
    )
    figures, costs_before = both(
        partial(rows_of, scope, dimension, keys, row=KeySums),
        partial(rows_of, before, dimension, keys, row=KeyCosts),
    )
    return CostPage(count, keys, figures, costs_before, total, total_before)


def list_names(scope: Scope, dimension: Dimension, *, limit: int, offset: int) -> tuple[int, list[str]]:
    found = summed(
        _Name,
        partial(union_of_rollups, scope, dimension),
        by=["key"],
        also=["cost_usd", "requests"],
        outer={"keys": "count() OVER ()"},
        tail=_PAGE,
        values={"limit": limit, "offset": offset},
        run=run_of(dimension),
        name="spend.keys",
    )
    if found or not offset:
        return (found[0].keys if found else 0), [row.key for row in found]
    return _count(scope, dimension), []


def _count(scope: Scope, dimension: Dimension) -> int:
    source = partial(union_of_rollups, scope, dimension)
    return count_keys(source, ["key"], run=run_of(dimension), name="spend.count")
