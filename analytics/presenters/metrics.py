from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from analytics.parameters.ranges import DEFAULT_DAYS, TimeRange
from analytics.queries import groups
from analytics.queries.distinct import count_distinct
from analytics.queries.groups import ModelFigures, Overview, PromptGrouping
from analytics.queries.parallel import both
from analytics.queries.prompt_cache import PromptCacheFigures, PromptCacheRow, list_prompt_cache
from analytics.queries.summed import TimedSums
from analytics.queries.usage import DayCost, Interval, IntervalFigures, StartedDayCosts, list_usage
from analytics.queries.users import list_users
from analytics.wire.providers import ProviderLatencies, provider_latency
from core.wire.pagination import Listing, Page
from core.wire.shown import seen_as, shown
from integrations.health.reader import project_health
from integrations.health.window import WINDOW_SECONDS
from integrations.pricing.selectors import applied_price

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

# An overview covers at most this range of time.
OVERVIEW = timedelta(days=DEFAULT_DAYS)

# The maximum lengths of a range that is shown by minutes, and by hours.
_BY_MINUTES, _BY_HOURS = timedelta(hours=3), timedelta(days=7)
_TOP_MODELS = 5
_MILLION = Decimal(1_000_000)


def overview(project_id: UUID, time_range: TimeRange, operation: str = "") -> dict[str, Any]:
    scope = time_range.of(project_id, operation)
    (sums, models), distinct = both(
        partial(groups.get_sums_by_model, scope, limit=_TOP_MODELS), partial(count_distinct, scope)
    )
    found = seen_as(
        Overview,
        sums,
        start_date=time_range.start,
        end_date=time_range.end,
        total_requests=sums.request_count,
        total_sessions=distinct.sessions,
        total_users=distinct.users,
        top_models=models,
    )
    return shown(found)


def totals(project_id: UUID, time_range: TimeRange, operation: str = "") -> dict[str, Any]:
    return shown(groups.get_totals(time_range.of(project_id, operation)))


def totals_compared(project_id: UUID, now: TimeRange, before: TimeRange) -> tuple[TimedSums, TimedSums]:
    return groups.get_totals_compared(now.of(project_id), (before.start, before.end))


def users(project_id: UUID, time_range: TimeRange, page: Page, operation: str = "") -> Listing:
    found = list_users(time_range.of(project_id, operation), limit=page.limit, offset=page.offset)
    unnamed = shown(found.unnamed) if found.unnamed else None
    return ranged(time_range, found.count, found.page, without_user_id=unnamed)


def models(project_id: UUID, time_range: TimeRange, page: Page, operation: str = "") -> Listing:
    scope = time_range.of(project_id, operation)
    count, rows = groups.list_models(scope, row=ModelFigures, limit=page.limit, offset=page.offset)
    return ranged(time_range, count, rows)


def operations(project_id: UUID, time_range: TimeRange, page: Page) -> Listing:
    rows = groups.list_operations(time_range.of(project_id))
    return ranged(time_range, len(rows), page.of(rows))


def prompts(
    project_id: UUID,
    time_range: TimeRange,
    page: Page,
    group_by: str = PromptGrouping.VERSION,
    prompt_config_id: UUID | None = None,
) -> Listing:
    scope, grouping = time_range.of(project_id), PromptGrouping(group_by)
    rows = groups.list_prompt_figures(scope, grouping, prompt_config_id=prompt_config_id)
    return ranged(time_range, len(rows), page.of(rows), group_by=group_by)


def daily_costs(project_id: UUID, time_range: TimeRange, page: Page, operation: str = "") -> Listing:
    scope = time_range.of(project_id, operation)
    count, rows = list_usage(scope, Interval.DAY, row=StartedDayCosts, limit=page.limit, offset=page.offset)
    return ranged(time_range, count, [seen_as(DayCost, row, date=row.start.date()) for row in rows])


def model_costs(project_id: UUID, time_range: TimeRange, page: Page, operation: str = "") -> Listing:
    total, rows = groups.list_model_costs(time_range.of(project_id, operation))
    return ranged(time_range, len(rows), page.of(rows), total_cost_usd=float(total))


def usage(
    project_id: UUID, time_range: TimeRange, page: Page, operation: str = "", interval: str | None = None
) -> Listing:
    chosen, scope = Interval(interval or interval_of(time_range)), time_range.of(project_id, operation)
    count, rows = list_usage(scope, chosen, row=IntervalFigures, limit=page.limit, offset=page.offset)
    return ranged(time_range, count, rows, interval=str(chosen))


def errors(project_id: UUID, time_range: TimeRange, page: Page, operation: str = "") -> Listing:
    rows = groups.list_error_kinds(time_range.of(project_id, operation))
    return ranged(time_range, len(rows), page.of(rows), total_errors=sum(row.error_count for row in rows))


def provider_latencies(project_id: UUID) -> ProviderLatencies:
    providers = [provider_latency(row) for row in project_health(project_id)]
    return {"window_seconds": WINDOW_SECONDS, "generated_at": datetime.now(UTC), "providers": providers}


def interval_of(time_range: TimeRange) -> Interval:
    length = time_range.end - time_range.start
    if length <= _BY_MINUTES:
        return Interval.MINUTE
    return Interval.HOUR if length <= _BY_HOURS else Interval.DAY


def prompt_caches(project_id: UUID, time_range: TimeRange, page: Page) -> Listing:
    """What the vendors' prompt caches saved, and could have saved at today's prices.

    Covers at most the last 30 days of the range: single requests are read.
    """
    time_range = TimeRange(max(time_range.start, time_range.end - OVERVIEW), time_range.end)
    rows = list_prompt_cache(time_range.of(project_id))
    results = [seen_as(PromptCacheFigures, row, missed_usd=_missed(project_id, row)) for row in page.of(rows)]
    return ranged(time_range, len(rows), results)


def _missed(project_id: UUID, row: PromptCacheRow) -> Decimal | None:
    """The US dollars by which reads of the missed tokens are cheaper than fresh input; None without a price."""
    if not row.missed_tokens:
        return Decimal(0)
    price = applied_price(project_id, row.provider, row.model)
    if price is None or price.input_cost_per_1m is None or price.cache_read_cost_per_1m is None:
        return None
    return row.missed_tokens * (price.input_cost_per_1m - price.cache_read_cost_per_1m) / _MILLION


def ranged(time_range: TimeRange, count: int, rows: Iterable[DataclassInstance], **more: Any) -> Listing:
    return Listing(
        count, [shown(row) for row in rows], {"start_date": time_range.start, "end_date": time_range.end, **more}
    )
