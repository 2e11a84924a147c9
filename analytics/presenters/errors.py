"""Presents the errors of a project by provider, model and code."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from uuid import UUID

from analytics.parameters.ranges import TimeRange
from analytics.presenters.metrics import interval_of
from analytics.queries.error_groups import find_error_samples, list_error_groups, list_error_intervals
from analytics.queries.usage import list_beginnings
from analytics.wire.errors import error_group
from core.wire.pagination import Listing, Page

# The counts of a group go back by at most this number of intervals from the end of the range.
MAX_COUNTS = 400


def error_groups(project_id: UUID, time_range: TimeRange, page: Page, operation: str = "") -> Listing:
    """Lists the groups by falling number of errors; `starts` are the intervals of their counts, the earliest first."""
    start, end = time_range.start, time_range.end
    interval = interval_of(time_range)
    begun = max(start, min(end, datetime.now(UTC)))
    starts = list_beginnings(start, begun, interval, limit=MAX_COUNTS)
    totals, rows = list_error_groups(project_id, start, end, limit=page.limit, offset=page.offset, operation=operation)
    kinds = [row.kind for row in rows]
    counts: defaultdict[int, dict[datetime, int]] = defaultdict(dict)
    if rows:
        first = max(start, starts[0])
        for found in list_error_intervals(project_id, first, begun, interval, kinds, operation=operation):
            counts[found.kind][found.start] = found.requests
    samples = find_error_samples(project_id, rows) if rows else {}
    results = [error_group(row, sample=samples.get(row.kind), starts=starts, counts=counts[row.kind]) for row in rows]
    more = {
        "start_date": start,
        "end_date": end,
        "interval": str(interval),
        "starts": starts,
        "total_errors": totals.errors,
    }
    return Listing(totals.groups, results, more)
