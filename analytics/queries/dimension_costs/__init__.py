from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from analytics.queries.dimension_costs.by_keys import list_names, page_at_once, page_by_keys
from analytics.queries.dimension_costs.figures import NO_COSTS, CostPage, KeyCosts, run_of, union_of_rollups
from analytics.queries.dimension_costs.of_sessions import list_sessions, page_of_sessions
from analytics.queries.dimensions import Dimension
from analytics.queries.rollup_ranges import same
from analytics.queries.summed import BEGINS, Scope, summed
from analytics.queries.usage import BEGINNING, Interval

__all__ = ["NO_COSTS", "CostPage", "IntervalKeyCosts", "list_interval_costs", "list_keys", "list_page"]


def list_page(scope: Scope, before: Scope, dimension: Dimension, *, limit: int, offset: int) -> CostPage:
    """The keys with a request in `scope`, by falling cost, then falling requests, then key."""
    if dimension is Dimension.SESSION:
        return page_of_sessions(scope, before, limit, offset)
    if dimension is Dimension.USER:
        return page_by_keys(scope, before, dimension, limit, offset)
    return page_at_once(scope, before, dimension, limit, offset)


def list_keys(scope: Scope, dimension: Dimension, *, limit: int, offset: int) -> list[str]:
    if dimension is Dimension.SESSION:
        return list_sessions(scope, limit, offset)
    return list_names(scope, dimension, limit=limit, offset=offset)[1]


@dataclass(frozen=True)
class IntervalKeyCosts(KeyCosts):
    start: datetime


def list_interval_costs(
    scope: Scope, dimension: Dimension, interval: Interval, keys: Sequence[str]
) -> list[IntervalKeyCosts]:
    beginning = same(BEGINNING[interval])
    return summed(
        IntervalKeyCosts,
        partial(union_of_rollups, scope, dimension, keys=keys, interval=interval, start=beginning),
        by=["start", "key"],
        outer=BEGINS,
        run=run_of(dimension),
        name="spend.intervals",
    )
