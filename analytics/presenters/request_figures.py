"""Presents figures about the requests of a filter: the counts of their values, and how many there were when."""

from __future__ import annotations

from uuid import UUID

from analytics.parameters.ranges import TimeRange
from analytics.presenters.metrics import interval_of
from analytics.queries.request_facets import list_facets
from analytics.queries.request_filters import RequestFilter
from analytics.queries.request_histogram import list_histogram
from analytics.queries.usage import Interval
from analytics.wire.request_figures import RequestFacets, RequestHistogram, request_facets, request_histogram
from core.errors import ValidationError

MAX_INTERVALS = 2_000


def facets(project_id: UUID, filters: RequestFilter) -> RequestFacets:
    return request_facets(list_facets(project_id, filters))


def histogram(
    project_id: UUID, filters: RequestFilter, time_range: TimeRange, interval: Interval | None = None
) -> RequestHistogram:
    """Returns the counts per interval; without `interval` the length of the range decides which one. Raises
    ValidationError for a range of more than MAX_INTERVALS intervals."""
    chosen = interval or interval_of(time_range)
    start, end = time_range.start, time_range.end
    if (end - start) // chosen.length >= MAX_INTERVALS:
        field = "interval" if interval else "start_date"
        problem = f"The range has more than {MAX_INTERVALS:,} intervals of a {chosen}."
        raise ValidationError(f"{field}: {problem}", details={field: [problem]})
    return request_histogram(list_histogram(project_id, filters, start, end, chosen), start, end, chosen)
