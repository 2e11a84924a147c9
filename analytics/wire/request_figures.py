"""The JSON of figures about the requests of a filter: facets and the histogram."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TypedDict

from analytics.queries.request_facets import Facet
from analytics.queries.request_histogram import HistogramRow
from analytics.queries.usage import Interval


class FacetValue(TypedDict):
    value: str
    request_count: int


class FacetEntry(TypedDict):
    name: str
    values: list[FacetValue]
    other_count: int
    counted_since: datetime | None


class RequestFacets(TypedDict):
    facets: list[FacetEntry]


class HistogramEntry(TypedDict):
    start: datetime
    request_count: int
    ok_count: int
    error_count: int
    cancelled_count: int


class RequestHistogram(TypedDict):
    start_date: datetime
    end_date: datetime
    interval: Interval
    request_count: int
    error_count: int
    results: list[HistogramEntry]


def request_facets(facets: Sequence[Facet]) -> RequestFacets:
    return {"facets": [_facet(facet) for facet in facets]}


def request_histogram(
    rows: Sequence[HistogramRow], start: datetime, end: datetime, interval: Interval
) -> RequestHistogram:
    return {
        "start_date": start,
        "end_date": end,
        "interval": interval,
        "request_count": sum(row.requests for row in rows),
        "error_count": sum(row.errors for row in rows),
        "results": [_interval(row) for row in rows],
    }


def _facet(facet: Facet) -> FacetEntry:
    return {
        "name": facet.name,
        "values": [{"value": row.value, "request_count": row.requests} for row in facet.values],
        "other_count": facet.other,
        "counted_since": facet.counted_since,
    }


def _interval(row: HistogramRow) -> HistogramEntry:
    return {
        "start": row.start,
        "request_count": row.requests,
        "ok_count": row.requests - row.errors - row.cancelled,
        "error_count": row.errors,
        "cancelled_count": row.cancelled,
    }
