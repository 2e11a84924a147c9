from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import UUID

from analytics.parameters.ranges import TimeRange
from analytics.presenters.metrics import interval_of, ranged
from analytics.queries.error_groups import (
    EVERYTHING,
    ErrorGroup,
    find_error_samples,
    list_error_groups,
    list_error_intervals,
)
from analytics.queries.parallel import both
from analytics.queries.provider_history import (
    IntervalCounts,
    list_deployment_intervals,
    list_failover_intervals,
    list_failovers,
    list_provider_intervals,
)
from analytics.queries.request_filters import RequestFilter
from analytics.queries.summed import Scope
from analytics.queries.usage import list_beginnings
from analytics.wire import providers
from core.wire.pagination import Listing, Page
from core.wire.shown import seen_as
from integrations.selectors import providers_with_names

# The attempts of requests are read from the requests themselves, so a range is at most this long.
MAX_RANGE = timedelta(days=7)
INTERVAL_MINUTES = (15, 30, 60, 180)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The counts of a group go back by at most this number of intervals from the end of the range.
MAX_COUNTS = 400


def provider_history(
    project_id: UUID, time_range: TimeRange, *, interval_minutes: int | str | None = None
) -> providers.ProviderHistories:
    """By provider with requests in the range: every interval that has begun, and by deployment if the project has named
    some."""
    start, end = time_range.start, max(time_range.start, min(time_range.end, datetime.now(UTC)))
    minutes, scope = int(interval_minutes or _interval_minutes(end - start)), Scope(project_id, start, end)
    answered, failed_over = both(
        partial(list_provider_intervals, scope, minutes), partial(list_failover_intervals, scope, minutes)
    )
    named = providers_with_names(project_id)
    by_deployment = list_deployment_intervals(scope, minutes) if named else []
    counts: defaultdict[tuple[str, str], defaultdict[datetime, Counter[str]]]
    counts = defaultdict(lambda: defaultdict(Counter))
    # The deployment is empty for all of a provider.
    for row in [*answered, *failed_over]:
        counts[row.provider, ""][row.start].update(_counts_of(row))
    for row in [*failed_over, *by_deployment]:
        if row.provider in named:
            counts[row.provider, row.deployment][row.start].update(_counts_of(row))
    starts, places = _starts(start, end, timedelta(minutes=minutes)), sorted(counts)

    def history(provider: str, deployment: str = "") -> providers.History:
        return providers.history([(begin, counts[provider, deployment][begin]) for begin in starts])

    return {
        "start_date": time_range.start,
        "end_date": time_range.end,
        "interval_minutes": minutes,
        "providers": [
            {
                "provider": provider,
                **history(provider),
                "deployments": [
                    {"deployment": deployment, **history(provider, deployment)}
                    for of, deployment in places
                    if of == provider and deployment
                ],
            }
            for provider in dict.fromkeys(provider for provider, _ in places)
        ],
    }


def _counts_of(row: IntervalCounts) -> Mapping[str, int]:
    return {name: getattr(row, name) for name in providers.COUNTS}


def failovers(project_id: UUID, time_range: TimeRange, page: Page) -> Listing:
    rows = list_failovers(time_range.of(project_id))
    return ranged(time_range, len(rows), page.of(rows), total_failovers=sum(row.request_count for row in rows))


def _interval_minutes(length: timedelta) -> int:
    days = length / timedelta(days=1)
    return 15 if days <= 1 else 30 if days <= 2 else 60


def _starts(start: datetime, end: datetime, length: timedelta) -> list[datetime]:
    first, last = (_EPOCH + (moment - _EPOCH) // length * length for moment in (start, end))
    return [first + step * length for step in range((last - first) // length + 1)]


def error_groups(
    project_id: UUID, time_range: TimeRange, page: Page, operation: str = "", filters: RequestFilter = EVERYTHING
) -> Listing:
    """By falling number of errors; `starts` are the intervals of their counts, the earliest first."""
    start, end = time_range.start, time_range.end
    interval = interval_of(time_range)
    begun = max(start, min(end, datetime.now(UTC)))
    starts = list_beginnings(start, begun, interval, limit=MAX_COUNTS)
    scope = time_range.of(project_id, operation)
    totals, rows = list_error_groups(scope, limit=page.limit, offset=page.offset, filters=filters)
    kinds = [row.kind for row in rows]
    counts: defaultdict[int, dict[datetime, int]] = defaultdict(dict)
    if rows:
        counted = replace(scope, start=max(start, starts[0]), end=begun)
        for found in list_error_intervals(counted, interval, kinds):
            counts[found.kind][found.start] = found.request_count
    samples = find_error_samples(project_id, rows) if rows else {}
    results = [
        seen_as(
            ErrorGroup,
            row,
            sample_request_id=samples.get(row.kind),
            counts=[counts[row.kind].get(start, 0) for start in starts],
        )
        for row in rows
    ]
    return ranged(time_range, totals.groups, results, interval=str(interval), starts=starts, total_errors=totals.errors)
