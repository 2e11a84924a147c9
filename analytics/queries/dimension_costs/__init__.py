"""Sums cost, requests and tokens by a dimension: a page of its keys by cost, and the largest in each interval."""

from __future__ import annotations

from analytics.queries.dimension_costs.by_keys import list_names, page_at_once, page_by_keys
from analytics.queries.dimension_costs.figures import CostPage, CostRow, DimensionRow, Scope
from analytics.queries.dimension_costs.intervals import IntervalCostRow, list_interval_costs
from analytics.queries.dimension_costs.of_sessions import list_sessions, page_of_sessions
from analytics.queries.dimensions import Dimension

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
