"""Sums cost, requests and tokens by a dimension: a page of its keys by cost, and the largest in each interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from analytics.queries.dimension_costs.by_keys import list_names, page_at_once, page_by_keys
from analytics.queries.dimension_costs.figures import (
    COSTS,
    CostPage,
    CostRow,
    DimensionRow,
    Scope,
    query,
    union_of_rollups,
)
from analytics.queries.dimension_costs.of_sessions import list_sessions, page_of_sessions
from analytics.queries.dimensions import Dimension
from analytics.queries.rollup_ranges import Key, totals
from analytics.queries.usage import BEGINNING, Interval

__all__ = [
    "CostPage",
    "CostRow",
    "DimensionRow",
    "IntervalCostRow",
    "Scope",
    "list_interval_costs",
    "list_keys",
    "list_page",
]


def list_page(scope: Scope, before: Scope, dimension: Dimension, *, limit: int, offset: int) -> CostPage:
    """Returns a page of the keys with a request in `scope`, by falling cost, then falling requests, then key."""
    if dimension is Dimension.SESSION:
        return page_of_sessions(scope, before, limit, offset)
    if dimension is Dimension.USER:
        return page_by_keys(scope, before, dimension, limit, offset)
    return page_at_once(scope, before, dimension, limit, offset)


def list_keys(scope: Scope, dimension: Dimension, *, limit: int, offset: int) -> list[str]:
    """Returns a page of the keys, by falling cost, then falling requests, then key."""
    if dimension is Dimension.SESSION:
        return list_sessions(scope, limit, offset)
    return list_names(scope, dimension, limit=limit, offset=offset)[1]


@dataclass(frozen=True)
class IntervalCostRow:
    """The cost of a key in the interval that begins at `start`."""

    start: datetime
    key: str
    requests: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: Decimal


def list_interval_costs(
    scope: Scope, dimension: Dimension, interval: Interval, keys: Sequence[str]
) -> list[IntervalCostRow]:
    """Returns what each of the keys cost in each interval in which it had requests."""
    beginning = Key(BEGINNING[interval], BEGINNING[interval])
    source, params = union_of_rollups(scope, dimension, COSTS, keys=keys, interval=interval, start=beginning)
    sql = (
        f"SELECT toDateTime64(f.start, 6, 'UTC') AS start, f.key AS key, {totals(*COSTS)}"
        f" FROM {source} AS f GROUP BY f.start, f.key"
    )
    return query(dimension, sql, params, row=IntervalCostRow, name="spend.intervals")
