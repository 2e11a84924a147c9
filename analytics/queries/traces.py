"""Reads the spans of traces: those that applications sent, and the gateway's own of the requests that joined them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from analytics.queries.request_spans import TracedRequest, derived_spans, first_moment, trace_requests
from analytics.queries.telemetry import MAX_RECORDS, first_spans, trace_spans
from analytics.telemetry.request_spans import REQUEST_ID
from analytics.telemetry.rows import SpanRow

_HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class TraceSpans:
    """The first spans of traces in the order of their times, and the requests that the gateway's own are made of."""

    spans: list[SpanRow]
    requests: list[TracedRequest]

    def shown_requests(self, *, beside: Container[UUID] = ()) -> list[tuple[datetime, UUID]]:
        """Returns the times and ids of the requests that have a span here, without those `beside`."""
        shown = {row.attributes.get(REQUEST_ID) for row in self.spans}
        return [
            (row.ts, row.request_id)
            for row in self.requests
            if str(row.request_id) in shown and row.request_id not in beside
        ]


def spans_of(project_id: UUID, trace_ids: Sequence[str], requests: Sequence[TracedRequest]) -> TraceSpans:
    """Returns the first 500 spans of the traces and of these requests, which may be in other traces too."""
    stored = trace_spans(project_id, trace_ids)
    # Without anything that has a time, the requests may be of any.
    hours = _hours(stored, requests) or _between(first_moment(), datetime.now(UTC))
    joined = trace_requests(project_id, trace_ids, hours, MAX_RECORDS)
    found = [*{row.request_id: row for row in (*requests, *joined)}.values()]
    return TraceSpans(first_spans(stored, derived_spans(found)), found)


def _hours(spans: Sequence[SpanRow], requests: Iterable[TracedRequest]) -> list[datetime]:
    """Returns the hours in which these spans and requests were under way, with one before and one after, because clocks
    differ and a span may be on its way."""
    extents = (*map(_extent, spans), *((row.ts, row.ts) for row in requests))
    return sorted({hour for begin, end in extents for hour in _between(begin - _HOUR, end + _HOUR)})


def _between(begin: datetime, end: datetime) -> list[datetime]:
    """Returns the beginnings of the hours of this time, as far as spans are kept."""
    first = max(begin, first_moment()).replace(minute=0, second=0, microsecond=0)
    last = min(end, datetime.now(UTC) + _HOUR)
    return [first + _HOUR * number for number in range((last - first) // _HOUR + 1)]


def _extent(span: SpanRow) -> tuple[datetime, datetime]:
    begin = datetime.fromisoformat(span.time[:26]).replace(tzinfo=UTC)
    # The end of a span is the application's own figure, which may lie beyond any date.
    lasted = min(span.duration_ns // 1000, timedelta(days=400) // timedelta.resolution)
    return begin, begin + timedelta(microseconds=lasted)
