"""Presents what the vendors' prompt caches saved, and what they could have saved at today's prices."""

from __future__ import annotations

from decimal import Decimal
from uuid import UUID

from analytics.parameters.ranges import TimeRange
from analytics.presenters.metrics import OVERVIEW
from analytics.queries.prompt_cache import PromptCacheRow, list_prompt_cache
from analytics.wire.prompt_cache import prompt_cache
from core.wire.pagination import Listing, Page
from integrations.pricing.selectors import applied_price

_MILLION = Decimal(1_000_000)


def prompt_caches(project_id: UUID, time_range: TimeRange, page: Page) -> Listing:
    """Returns the figures of the last 30 days of the range at most, because single requests are read."""
    time_range = TimeRange(max(time_range.start, time_range.end - OVERVIEW), time_range.end)
    rows = list_prompt_cache(project_id, time_range.start, time_range.end)
    shown = [prompt_cache(row, _missed(project_id, row)) for row in page.of(rows)]
    return Listing(len(rows), shown, {"start_date": time_range.start, "end_date": time_range.end})


def _missed(project_id: UUID, row: PromptCacheRow) -> Decimal | None:
    """Returns the US dollars by which reads of the missed tokens are cheaper than fresh input; None without a price."""
    if not row.missed_tokens:
        return Decimal(0)
    price = applied_price(project_id, row.provider, row.model)
    if price is None or price.input_cost_per_1m is None or price.cache_read_cost_per_1m is None:
        return None
    return row.missed_tokens * (price.input_cost_per_1m - price.cache_read_cost_per_1m) / _MILLION
