from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import UUID

from analytics.parameters.ranges import TimeRange
from analytics.presenters.metrics import interval_of, ranged
from analytics.queries import visible
from analytics.queries.dimension_costs import (
    NO_COSTS,
    IntervalKeyCosts,
    list_interval_costs,
    list_keys,
    list_page,
)
from analytics.queries.dimensions import Dimension
from analytics.queries.groups import list_price_gaps, percentage
from analytics.queries.summed import Scope
from analytics.queries.usage import Interval, IntervalCosts, count_intervals, list_usage
from analytics.wire import spend
from core.errors import ValidationError
from core.keys.services import METADATA_PREFIX
from core.selectors import api_key_names, team_names
from core.wire.pagination import Listing, Page
from core.wire.shown import seen_as, shown
from integrations.pricing.lookup import find_entry
from integrations.selectors import price_overrides, price_table

MAX_INTERVALS = 1_000
DEFAULT_TOP, MAX_TOP = 5, 20

_TICK = timedelta(microseconds=1)
_NAMES = {Dimension.API_KEY: api_key_names, Dimension.TEAM: team_names}


def cost_by(
    project_id: UUID, time_range: TimeRange, page: Page, operation: str = "", *, group_by: str, tag: str = ""
) -> Listing:
    """The keys of a dimension by falling cost, each with its figures of the period before. `tag` is the metadata name
    by which METADATA splits."""
    dimension, past = Dimension(group_by), range_before(time_range, datetime.now(UTC))
    scope, before = (_scope(project_id, one, operation, tag) for one in (time_range, past))
    found = list_page(scope, before, dimension, limit=page.limit, offset=page.offset)
    names = names_of(project_id, dimension, found.keys)
    results = [
        seen_as(
            spend.DimensionFigures,
            found.figures[key],
            name=names[key],
            percentage=percentage(found.figures[key].total_cost_usd, found.total.total_cost_usd),
            previous=seen_as(spend.PreviousFigures, found.costs_before.get(key, NO_COSTS)),
        )
        for key in found.keys
        if key in found.figures
    ]
    totals_before = seen_as(spend.PreviousTotals, found.total_before, start_date=past.start, end_date=past.end)
    more = {"group_by": dimension, **shown(found.total), "range_before": shown(totals_before)}
    return ranged(time_range, found.count, results, **more)


def cost_intervals(
    project_id: UUID,
    time_range: TimeRange,
    operation: str = "",
    *,
    group_by: str,
    interval: str | None = None,
    top: int = DEFAULT_TOP,
    tag: str = "",
) -> spend.CostIntervals:
    """The cost of the `top` keys, and of all others together, in each interval that has begun, the earliest first.
    Raises ValidationError for more than MAX_INTERVALS intervals."""
    dimension, chosen = Dimension(group_by), Interval(interval or interval_of(time_range))
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
        partial(list_usage, scope, chosen, row=IntervalCosts, limit=MAX_INTERVALS),
    )
    totals.reverse()
    starts = [row.start for row in totals]
    names = names_of(project_id, dimension, keys)
    by_key: defaultdict[str, dict[datetime, IntervalKeyCosts]] = defaultdict(dict)
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
    """The models that had requests of unknown cost; `has_price_now` tells whether a price was set since."""
    rows = list_price_gaps(time_range.of(project_id, operation))
    priced = price_overrides(project_id).keys() | price_table().keys() if rows else set()
    results = [
        seen_as(spend.PriceGap, row, has_price_now=find_entry(priced, row.provider, row.model) is not None)
        for row in page.of(rows)
    ]
    return ranged(time_range, len(rows), results)


def range_before(time_range: TimeRange, now: datetime) -> TimeRange:
    """The range just before, as long as the past part of `time_range`."""
    end = max(time_range.start, min(time_range.end, now))
    return TimeRange(time_range.start - (end - time_range.start) - _TICK, time_range.start - _TICK)


def names_of(project_id: UUID, dimension: Dimension, keys: Sequence[str]) -> Mapping[str, str]:
    if dimension not in _NAMES:
        return {key: key for key in keys}
    named = _NAMES[dimension](project_id, [int(key) for key in keys if key])
    return {key: named.get(int(key), key) if key else "" for key in keys}


def _scope(project_id: UUID, time_range: TimeRange, operation: str, tag: str) -> Scope:
    return time_range.of(project_id, operation, tag=f"{METADATA_PREFIX}{tag}" if tag else "")
