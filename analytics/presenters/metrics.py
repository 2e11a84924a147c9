"""Presents the figures about a project's traffic, cost and errors; those of one `operation` unless it is empty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from analytics.parameters.ranges import DEFAULT_DAYS, TimeRange
from analytics.queries.failures import list_failures
from analytics.queries.models import list_model_costs, list_models
from analytics.queries.overview import get_overview
from analytics.queries.prompt_cache import PromptCacheRow, list_prompt_cache
from analytics.queries.prompt_figures import PromptGrouping, list_prompt_figures
from analytics.queries.range_totals import get_totals, get_totals_compared, list_operations
from analytics.queries.usage import Interval, list_usage
from analytics.queries.users import list_users
from analytics.wire import metrics
from analytics.wire.prompt_cache import prompt_cache
from analytics.wire.provider_latency import ProviderLatencies, provider_latency
from core.wire.pagination import Listing, Page
from integrations.health.reader import project_health
from integrations.health.window import WINDOW_SECONDS
from integrations.pricing.selectors import applied_price

# An overview covers at most this range of time.
OVERVIEW = timedelta(days=DEFAULT_DAYS)

# The maximum lengths of a range that is shown by minutes, and by hours.
_BY_MINUTES, _BY_HOURS = timedelta(hours=3), timedelta(days=7)
_MILLION = Decimal(1_000_000)


def overview(project_id: UUID, time_range: TimeRange, operation: str = "") -> metrics.Overview:
    found = get_overview(project_id, time_range.start, time_range.end, operation=operation)
    return metrics.overview(found, time_range.start, time_range.end)


def totals(project_id: UUID, time_range: TimeRange, operation: str = "") -> metrics.Totals:
    found = get_totals(project_id, time_range.start, time_range.end, operation=operation)
    return metrics.totals(found, time_range.start, time_range.end)


def totals_compared(project_id: UUID, now: TimeRange, before: TimeRange) -> tuple[metrics.Totals, metrics.Totals]:
    """Returns the totals of a range and of one that ends before it begins."""
    ranges = (now.start, now.end), (before.start, before.end)
    found = get_totals_compared(project_id, *ranges)
    return metrics.totals(found[0], *ranges[0]), metrics.totals(found[1], *ranges[1])


def users(project_id: UUID, time_range: TimeRange, page: Page, operation: str = "") -> Listing:
    found = list_users(
        project_id, time_range.start, time_range.end, limit=page.limit, offset=page.offset, operation=operation
    )
    unnamed = metrics.user(found.unnamed) if found.unnamed else None
    return _listing(time_range, found.count, [metrics.user(row) for row in found.page], without_user_id=unnamed)


def models(project_id: UUID, time_range: TimeRange, page: Page, operation: str = "") -> Listing:
    count, rows = list_models(
        project_id, time_range.start, time_range.end, limit=page.limit, offset=page.offset, operation=operation
    )
    return _listing(time_range, count, [metrics.model(row) for row in rows])


def operations(project_id: UUID, time_range: TimeRange, page: Page) -> Listing:
    rows = list_operations(project_id, time_range.start, time_range.end)
    return _listing(time_range, len(rows), page.of([metrics.operation(row) for row in rows]))


def prompts(
    project_id: UUID,
    time_range: TimeRange,
    page: Page,
    grouping: PromptGrouping = PromptGrouping.VERSION,
    prompt_config_id: UUID | None = None,
) -> Listing:
    """Lists the versions of prompt configs that served requests, or with the other grouping the configs."""
    rows = list_prompt_figures(
        project_id, time_range.start, time_range.end, grouping, prompt_config_id=prompt_config_id
    )
    return _listing(time_range, len(rows), page.of([metrics.prompt(row) for row in rows]), group_by=str(grouping))


def daily_costs(project_id: UUID, time_range: TimeRange, page: Page, operation: str = "") -> Listing:
    count, rows = list_usage(
        project_id,
        time_range.start,
        time_range.end,
        Interval.DAY,
        limit=page.limit,
        offset=page.offset,
        percentiles=False,
        operation=operation,
    )
    return _listing(time_range, count, [metrics.day_cost(row) for row in rows])


def model_costs(project_id: UUID, time_range: TimeRange, page: Page, operation: str = "") -> Listing:
    rows = list_model_costs(project_id, time_range.start, time_range.end, operation=operation)
    total = float(sum(row.cost_usd for row in rows))
    return _listing(time_range, len(rows), page.of(metrics.model_costs(rows)), total_cost_usd=total)


def usage(
    project_id: UUID, time_range: TimeRange, page: Page, interval: Interval | None = None, operation: str = ""
) -> Listing:
    """Lists usage per interval; without `interval` the length of the range decides which one."""
    chosen = interval or interval_of(time_range)
    count, rows = list_usage(
        project_id, time_range.start, time_range.end, chosen, limit=page.limit, offset=page.offset, operation=operation
    )
    return _listing(time_range, count, [metrics.usage(row) for row in rows], interval=str(chosen))


def errors(project_id: UUID, time_range: TimeRange, page: Page, operation: str = "") -> Listing:
    rows = list_failures(project_id, time_range.start, time_range.end, operation=operation)
    total = sum(row.requests for row in rows)
    return _listing(time_range, len(rows), page.of(metrics.failures(rows)), total_errors=total)


def provider_latencies(project_id: UUID) -> ProviderLatencies:
    providers = [provider_latency(row) for row in project_health(project_id)]
    return {"window_seconds": WINDOW_SECONDS, "generated_at": datetime.now(UTC), "providers": providers}


def interval_of(time_range: TimeRange) -> Interval:
    """Returns the interval by which a range is shown unless the caller names one."""
    length = time_range.end - time_range.start
    if length <= _BY_MINUTES:
        return Interval.MINUTE
    return Interval.HOUR if length <= _BY_HOURS else Interval.DAY


def prompt_caches(project_id: UUID, time_range: TimeRange, page: Page) -> Listing:
    """Returns what the vendors' prompt caches saved, and what they could have saved at today's prices, in the last 30
    days of the range at most, because single requests are read."""
    time_range = TimeRange(max(time_range.start, time_range.end - OVERVIEW), time_range.end)
    rows = list_prompt_cache(project_id, time_range.start, time_range.end)
    shown = [prompt_cache(row, _missed(project_id, row)) for row in page.of(rows)]
    return _listing(time_range, len(rows), shown)


def _missed(project_id: UUID, row: PromptCacheRow) -> Decimal | None:
    """Returns the US dollars by which reads of the missed tokens are cheaper than fresh input; None without a price."""
    if not row.missed_tokens:
        return Decimal(0)
    price = applied_price(project_id, row.provider, row.model)
    if price is None or price.input_cost_per_1m is None or price.cache_read_cost_per_1m is None:
        return None
    return row.missed_tokens * (price.input_cost_per_1m - price.cache_read_cost_per_1m) / _MILLION


def _listing(time_range: TimeRange, count: int, results: Sequence[Mapping[str, Any]], **more: Any) -> Listing:
    """Returns a page whose further fields name the range of time that it covers."""
    return Listing(count, results, {"start_date": time_range.start, "end_date": time_range.end, **more})
