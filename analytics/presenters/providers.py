"""Presents how each provider did over time, and which replaced which."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import UUID

from analytics.queries.parallel import both
from analytics.queries.provider_history import list_failover_intervals, list_failovers, list_provider_intervals
from analytics.ranges import TimeRange
from analytics.wire import providers
from core.pagination import Listing, Page

# The attempts of requests are read from the requests themselves, so a range is at most this long.
MAX_RANGE = timedelta(days=7)
INTERVAL_MINUTES = (15, 30, 60, 180)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def provider_history(
    project_id: UUID, time_range: TimeRange, interval_minutes: int | None = None
) -> providers.ProviderHistories:
    """Returns the providers that had requests in the range by name, each with every interval that has begun."""
    start, end = time_range.start, max(time_range.start, min(time_range.end, datetime.now(UTC)))
    minutes = interval_minutes or _interval_minutes(end - start)
    answered, failed_over = both(
        partial(list_provider_intervals, project_id, start, end, minutes),
        partial(list_failover_intervals, project_id, start, end, minutes),
    )
    requests = {(row.provider, row.start): row for row in answered}
    failovers = Counter({(row.provider, row.start): row.failovers for row in failed_over})
    starts = _starts(start, end, timedelta(minutes=minutes))
    names = sorted({provider for provider, _ in [*requests, *failovers]})
    return {
        "start_date": time_range.start,
        "end_date": time_range.end,
        "interval_minutes": minutes,
        "providers": [
            providers.provider_history(
                name,
                [
                    providers.provider_interval(
                        moment,
                        row.requests if (row := requests.get((name, moment))) else 0,
                        row.errors if row else 0,
                        failovers[name, moment],
                    )
                    for moment in starts
                ],
            )
            for name in names
        ],
    }


def failovers(project_id: UUID, time_range: TimeRange, page: Page) -> Listing:
    """Lists the failovers from one model at a provider to the next by falling number of requests."""
    rows = list_failovers(project_id, time_range.start, time_range.end)
    more = {
        "start_date": time_range.start,
        "end_date": time_range.end,
        "total_failovers": sum(row.requests for row in rows),
    }
    return Listing(len(rows), [providers.failover(row) for row in page.of(rows)], more)


def _interval_minutes(length: timedelta) -> int:
    days = length / timedelta(days=1)
    return 15 if days <= 1 else 30 if days <= 2 else 60


def _starts(start: datetime, end: datetime, length: timedelta) -> list[datetime]:
    first, last = (_EPOCH + (moment - _EPOCH) // length * length for moment in (start, end))
    return [first + step * length for step in range((last - first) // length + 1)]
