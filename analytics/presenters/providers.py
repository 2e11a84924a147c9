"""Presents the errors of a project in groups, how each provider performed, and which provider took over from which."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Set
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import UUID

from analytics.parameters.ranges import TimeRange
from analytics.presenters.metrics import interval_of
from analytics.queries.error_groups import EVERYTHING, find_error_samples, list_error_groups, list_error_intervals
from analytics.queries.parallel import both
from analytics.queries.provider_history import (
    list_deployment_intervals,
    list_failover_intervals,
    list_failovers,
    list_provider_intervals,
)
from analytics.queries.request_filters import RequestFilter
from analytics.queries.usage import list_beginnings
from analytics.wire import providers
from core.wire.pagination import Listing, Page
from integrations.selectors import providers_with_names

# The attempts of requests are read from the requests themselves, so a range is at most this long.
MAX_RANGE = timedelta(days=7)
INTERVAL_MINUTES = (15, 30, 60, 180)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The counts of a group go back by at most this number of intervals from the end of the range.
MAX_COUNTS = 400


def provider_history(
    project_id: UUID, time_range: TimeRange, interval_minutes: int | None = None
) -> providers.ProviderHistories:
    """Returns the providers that had requests in the range by name, each with every interval that has begun, and by
    deployment where the project has named some."""
    start, end = time_range.start, max(time_range.start, min(time_range.end, datetime.now(UTC)))
    minutes = interval_minutes or _interval_minutes(end - start)
    answered, failed_over = both(
        partial(list_provider_intervals, project_id, start, end, minutes),
        partial(list_failover_intervals, project_id, start, end, minutes),
    )
    named = providers_with_names(project_id)
    by_deployment = list_deployment_intervals(project_id, start, end, minutes) if named else []
    counts = _Counts()
    for row in answered:
        counts.at((row.provider, ""), row.start).add(row.requests, row.errors)
    for failed in failed_over:
        counts.at((failed.provider, ""), failed.start).failovers += failed.failovers
        if failed.provider in named:
            counts.at((failed.provider, failed.deployment), failed.start).failovers += failed.failovers
    for one in by_deployment:
        if one.provider in named:
            counts.at((one.provider, one.deployment), one.start).add(one.requests, one.errors)
    starts = _starts(start, end, timedelta(minutes=minutes))
    return {
        "start_date": time_range.start,
        "end_date": time_range.end,
        "interval_minutes": minutes,
        "providers": [
            providers.provider_history(
                provider,
                counts.intervals((provider, ""), starts),
                [
                    providers.deployment_history(deployment, counts.intervals((provider, deployment), starts))
                    for deployment in counts.deployments_of(provider)
                ],
            )
            for provider in sorted({provider for provider, _ in counts.places})
        ],
    }


@dataclass(slots=True)
class _Count:
    requests: int = 0
    errors: int = 0
    failovers: int = 0

    def add(self, requests: int, errors: int) -> None:
        self.requests += requests
        self.errors += errors


class _Counts:
    """Requests, errors and failovers by interval of each provider, whose deployment is empty here, and of each named
    deployment."""

    def __init__(self) -> None:
        self._found: defaultdict[tuple[str, str], defaultdict[datetime, _Count]] = defaultdict(
            lambda: defaultdict(_Count)
        )

    @property
    def places(self) -> Set[tuple[str, str]]:
        return self._found.keys()

    def at(self, place: tuple[str, str], start: datetime) -> _Count:
        return self._found[place][start]

    def deployments_of(self, provider: str) -> list[str]:
        return sorted(deployment for of, deployment in self.places if of == provider and deployment)

    def intervals(self, place: tuple[str, str], starts: list[datetime]) -> list[providers.ProviderInterval]:
        found, none = self._found[place], _Count()
        counts = (found.get(start, none) for start in starts)
        return [
            providers.provider_interval(start, count.requests, count.errors, count.failovers)
            for start, count in zip(starts, counts, strict=True)
        ]


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


def error_groups(
    project_id: UUID, time_range: TimeRange, page: Page, operation: str = "", filters: RequestFilter = EVERYTHING
) -> Listing:
    """Lists the groups by falling number of errors; `starts` are the intervals of their counts, the earliest first."""
    start, end = time_range.start, time_range.end
    interval = interval_of(time_range)
    begun = max(start, min(end, datetime.now(UTC)))
    starts = list_beginnings(start, begun, interval, limit=MAX_COUNTS)
    totals, rows = list_error_groups(
        project_id, start, end, limit=page.limit, offset=page.offset, operation=operation, filters=filters
    )
    kinds = [row.kind for row in rows]
    counts: defaultdict[int, dict[datetime, int]] = defaultdict(dict)
    if rows:
        first = max(start, starts[0])
        for found in list_error_intervals(project_id, first, begun, interval, kinds, operation=operation):
            counts[found.kind][found.start] = found.requests
    samples = find_error_samples(project_id, rows) if rows else {}
    results = [
        providers.error_group(row, sample=samples.get(row.kind), starts=starts, counts=counts[row.kind]) for row in rows
    ]
    more = {
        "start_date": start,
        "end_date": end,
        "interval": str(interval),
        "starts": starts,
        "total_errors": totals.errors,
    }
    return Listing(totals.groups, results, more)
