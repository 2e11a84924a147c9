"""The JSON of cost by a dimension."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import TypedDict

from analytics.queries.dimension_costs import CostRow, DimensionRow, IntervalCostRow
from analytics.queries.dimensions import Dimension
from analytics.queries.price_gaps import PriceGapRow
from analytics.queries.usage import Interval, IntervalRow
from analytics.wire.metrics import Sums, sums


class PreviousFigures(TypedDict):
    request_count: int
    total_tokens: int
    total_cost_usd: float


class DimensionFigures(Sums):
    key: str
    name: str
    percentage: float
    previous: PreviousFigures


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


class PriceGap(TypedDict):
    provider: str
    model: str
    unpriced_request_count: int
    request_count: int
    total_tokens: int
    has_price_now: bool


def dimension_figures(row: DimensionRow, before: CostRow | None, *, name: str, total: Decimal) -> DimensionFigures:
    """Returns the figures of a key. The percentage is of `total`, the spend of all requests of the range."""
    return {
        "key": row.key,
        "name": name,
        **sums(row),
        "percentage": float(100 * row.cost_usd / total) if total else 0.0,
        "previous": previous_figures(before or CostRow(row.key)),
    }


def previous_figures(row: CostRow) -> PreviousFigures:
    return {
        "request_count": row.requests,
        "total_tokens": row.prompt_tokens + row.completion_tokens,
        "total_cost_usd": float(row.cost_usd),
    }


def series(key: str, name: str, starts: Sequence[datetime], rows: Mapping[datetime, IntervalCostRow]) -> CostSeries:
    """Returns the figures of a key in each of the intervals, 0 where it had no requests."""
    found = [rows.get(start) for start in starts]
    return {
        "key": key,
        "name": name,
        "total_cost_usd": [float(row.cost_usd) if row else 0.0 for row in found],
        "request_count": [row.requests if row else 0 for row in found],
        "total_tokens": [row.prompt_tokens + row.completion_tokens if row else 0 for row in found],
    }


def other(totals: Sequence[IntervalRow], rows: Sequence[IntervalCostRow]) -> CostSeries:
    """Returns what is left in each interval of all requests when those of the named keys are taken out."""
    costs = {row.start: row.cost_usd for row in totals}
    requests = {row.start: row.requests for row in totals}
    tokens = {row.start: row.prompt_tokens + row.completion_tokens for row in totals}
    for row in rows:
        costs[row.start] -= row.cost_usd
        requests[row.start] -= row.requests
        tokens[row.start] -= row.prompt_tokens + row.completion_tokens
    # A request that is stored between the two queries would make a difference negative.
    return {
        "key": "",
        "name": "other",
        "total_cost_usd": [max(float(cost), 0.0) for cost in costs.values()],
        "request_count": [max(count, 0) for count in requests.values()],
        "total_tokens": [max(count, 0) for count in tokens.values()],
    }


def price_gap(row: PriceGapRow, *, has_price_now: bool) -> PriceGap:
    return {
        "provider": row.provider,
        "model": row.model,
        "unpriced_request_count": row.unpriced,
        "request_count": row.requests,
        "total_tokens": row.prompt_tokens + row.completion_tokens,
        "has_price_now": has_price_now,
    }
