from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypedDict

from analytics.queries.dimension_costs import NO_COSTS, IntervalKeyCosts
from analytics.queries.dimensions import Dimension
from analytics.queries.groups import UnpricedModel
from analytics.queries.summed import Costs, Sums
from analytics.queries.usage import Interval, IntervalCosts


class PreviousFigures(Costs):
    """The figures of the period before."""


@dataclass(frozen=True)
class DimensionFigures(Sums):
    """The figures of a key. The percentage is of the spend of all requests of the range."""

    key: str
    name: str
    percentage: float
    previous: PreviousFigures


@dataclass(frozen=True)
class PreviousTotals(PreviousFigures):
    start_date: datetime
    end_date: datetime


class CostSeries(TypedDict):
    key: str
    name: str
    total_cost_usd: list[float]
    request_count: list[int]
    total_tokens: list[int]


class CostIntervals(TypedDict):
    start_date: datetime
    end_date: datetime
    group_by: Dimension
    interval: Interval
    starts: list[datetime]
    series: list[CostSeries]
    other: CostSeries


@dataclass(frozen=True)
class PriceGap(UnpricedModel):
    has_price_now: bool


def series(key: str, name: str, starts: Sequence[datetime], rows: Mapping[datetime, IntervalKeyCosts]) -> CostSeries:
    """Returns the figures of a key in each of the intervals, 0 where it had no requests."""
    found = [rows.get(start) or NO_COSTS for start in starts]
    return {
        "key": key,
        "name": name,
        "total_cost_usd": [float(row.total_cost_usd) for row in found],
        "request_count": [row.request_count for row in found],
        "total_tokens": [row.total_tokens for row in found],
    }


def other(totals: Sequence[IntervalCosts], rows: Sequence[IntervalKeyCosts]) -> CostSeries:
    costs = {row.start: row.total_cost_usd for row in totals}
    requests = {row.start: row.request_count for row in totals}
    tokens = {row.start: row.total_tokens for row in totals}
    for row in rows:
        costs[row.start] -= row.total_cost_usd
        requests[row.start] -= row.request_count
        tokens[row.start] -= row.total_tokens
    # A request that is stored between the two queries would make a difference negative.
    return {
        "key": "",
        "name": "other",
        "total_cost_usd": [max(float(cost), 0.0) for cost in costs.values()],
        "request_count": [max(count, 0) for count in requests.values()],
        "total_tokens": [max(count, 0) for count in tokens.values()],
    }
