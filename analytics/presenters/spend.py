"""Presents what a project's requests cost by a dimension beside the period before, and the models without a price."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import UUID

from analytics.parameters.ranges import TimeRange
from analytics.presenters.metrics import interval_of
from analytics.queries import visible
from analytics.queries.dimension_costs import (
    IntervalCostRow,
    Scope,
    list_interval_costs,
    list_keys,
    list_page,
)
from analytics.queries.dimensions import Dimension
from analytics.queries.price_gaps import list_price_gaps
from analytics.queries.usage import Interval, count_intervals, list_usage
from analytics.wire import spend
from core.errors import ValidationError
from core.keys.services import METADATA_PREFIX
from core.selectors import api_key_names, team_names
from core.wire.pagination import Listing, Page
from integrations.pricing.lookup import find_entry
from integrations.selectors import price_overrides, price_table

MAX_INTERVALS = 1_000
DEFAULT_TOP, MAX_TOP = 5, 20

_TICK = timedelta(microseconds=1)
_NAMES = {Dimension.API_KEY: api_key_names, Dimension.TEAM: team_names}


def cost_by(
    project_id: UUID, dimension: Dimension, time_range: TimeRange, page: Page, operation: str = "", *, tag: str = ""
) -> Listing:
    """Lists the keys of the dimension by falling cost, each with its figures of the period before. `tag` is the name of
    the metadata by which the dimension METADATA splits."""
    past = range_before(time_range, datetime.now(UTC))
    scope, before = (_scope(project_id, one, operation, tag) for one in (time_range, past))
    found = list_page(scope, before, dimension, limit=page.limit, offset=page.offset)
    names = names_of(project_id, dimension, found.keys)
    results = [
        spend.dimension_figures(
            found.figures[key], found.costs_before.get(key), name=names[key], total=found.total.cost_usd
        )
        for key in found.keys
        if key in found.figures
    ]
    totals_before: spend.PreviousTotals = {
        "start_date": past.start,
        "end_date": past.end,
        **spend.previous_figures(found.total_before),
    }
    more = {
        "start_date": time_range.start,
        "end_date": time_range.end,
        "group_by": dimension,
        **spend.previous_figures(found.total),
        "range_before": totals_before,
    }
    return Listing(found.count, results, more)


def cost_intervals(
    project_id: UUID,
    dimension: Dimension,
    time_range: TimeRange,
    *,
    interval: Interval | None = None,
    top: int = DEFAULT_TOP,
    operation: str = "",
    tag: str = "",
) -> spend.CostIntervals:
    """Returns the cost of the `top` keys and of all others together in each interval that has begun, the earliest
    first. Raises ValidationError for a range of more than MAX_INTERVALS intervals."""
    chosen = interval or interval_of(time_range)
    begun = TimeRange(time_range.start, max(time_range.start, min(time_range.end, datetime.now(UTC))))
    if count_intervals(begun.start, begun.end, chosen) > MAX_INTERVALS:
        field = "interval" if interval else "start_date"
        problem = f"The range has more than {MAX_INTERVALS:,} intervals of a {chosen}."
        raise ValidationError.of_field(field, problem)
    scope = _scope(project_id, begun, operation, tag)
    keys = list_keys(scope, dimension, limit=top, offset=0)
    rows, (_, totals) = visible.both_visible(
        project_id,
        partial(list_interval_costs, scope, dimension, chosen, keys),
        partial(
            list_usage,
            project_id,
            begun.start,
            begun.end,
            chosen,
            limit=MAX_INTERVALS,
            offset=0,
            percentiles=False,
            operation=operation,
        ),
    )
    totals.reverse()
    starts = [row.start for row in totals]
    names = names_of(project_id, dimension, keys)
    by_key: defaultdict[str, dict[datetime, IntervalCostRow]] = defaultdict(dict)
    for row in rows:
        by_key[row.key][row.start] = row
    return {
        "start_date": time_range.start,
        "end_date": time_range.end,
        "group_by": dimension,
        "interval": chosen,
        "starts": starts,
        "series": [spend.series(key, names[key], starts, by_key[key]) for key in keys],
        "other": spend.other(totals, rows),
    }


def price_gaps(project_id: UUID, time_range: TimeRange, page: Page, operation: str = "") -> Listing:
    """Lists the models that had requests of unknown cost; `has_price_now` tells whether a price was set since."""
    rows = list_price_gaps(project_id, time_range.start, time_range.end, operation=operation)
    priced = price_overrides(project_id).keys() | price_table().keys() if rows else set()
    shown = [
        spend.price_gap(row, has_price_now=find_entry(priced, row.provider, row.model) is not None)
        for row in page.of(rows)
    ]
    return Listing(len(rows), shown, {"start_date": time_range.start, "end_date": time_range.end})


def range_before(time_range: TimeRange, now: datetime) -> TimeRange:
    """Returns the range just before, as long as the part of `time_range` that is over."""
    end = max(time_range.start, min(time_range.end, now))
    return TimeRange(time_range.start - (end - time_range.start) - _TICK, time_range.start - _TICK)


def names_of(project_id: UUID, dimension: Dimension, keys: Sequence[str]) -> Mapping[str, str]:
    """Returns the name of each key: that of an API key or a team, as far as it still exists, and otherwise the key
    itself."""
    if dimension not in _NAMES:
        return {key: key for key in keys}
    named = _NAMES[dimension](project_id, [int(key) for key in keys if key])
    return {key: named.get(int(key), key) if key else "" for key in keys}


def _scope(project_id: UUID, time_range: TimeRange, operation: str, tag: str) -> Scope:
    return Scope(project_id, time_range.start, time_range.end, operation, f"{METADATA_PREFIX}{tag}" if tag else "")
