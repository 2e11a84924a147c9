"""Sums cost, requests and tokens by a dimension: a page of its keys by cost, and the largest in each interval."""

from analytics.queries.dimension_costs.figures import CostPage, CostRow, DimensionRow, Scope
from analytics.queries.dimension_costs.intervals import IntervalCostRow, list_interval_costs
from analytics.queries.dimension_costs.pages import list_keys, list_page

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
