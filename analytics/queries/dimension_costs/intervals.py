"""The cost of given keys of a dimension in each interval of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from analytics.queries.dimension_costs.figures import COSTS, Scope, query, union_of_rollups
from analytics.queries.dimensions import Dimension
from analytics.queries.rollup_ranges import Key, totals
from analytics.queries.usage import BEGINNING, Interval


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
