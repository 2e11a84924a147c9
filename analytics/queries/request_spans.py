"""Derives the gateway's own spans of a session or of traces from its requests; they are not stored elsewhere.

Requests of releases that stored their spans in `otel_traces` lack `spans_derived`, and keep those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Any
from uuid import UUID

import msgspec
from django.conf import settings

from analytics.queries import visible
from analytics.request_log.record import AttemptRecord, Outcome, RequestRecord
from analytics.telemetry.request_spans import request_spans
from analytics.telemetry.rows import SpanRow

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_NO_UUID = UUID(int=0)


@dataclass(frozen=True)
class TracedRequest:
    project_id: UUID
    request_id: UUID
    ts: datetime
    session_id: str
    outcome: str
    status_code: int
    source: str
    user_id: str
    model: str
    error_code: str
    finish_reason: str
    is_stream: bool
    cache_status: str
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    latency_ms: int
    ttft_ms: int
    prompt_version: int
    prompt_name: str
    rollout_id: UUID
    variant: str
    attempts: str
    trace_id: str
    parent_span_id: str
    operation: str


@dataclass(frozen=True)
class _Range:
    requests: int
    first: datetime
    last: datetime


# The days of a session say where its requests lie; without them all rows of its project would be looked through.
_RANGE = """
SELECT sum(s.requests) AS requests, min(s.started_at) AS first, max(s.ended_at) AS last
FROM session_days AS s
WHERE s.project_id = {project:UUID} AND s.session_hash = cityHash64({session:String})
    AND s.session_id = {session:String} AND s.day >= {since:Date}
"""
# Ties are kept, because spans of the same time are ordered by their own ids.
_FIRST = "ORDER BY ts LIMIT {limit:UInt32} WITH TIES"
_COLUMNS = ", ".join(TracedRequest.__dataclass_fields__)
_OF_SESSION = f"""
SELECT {_COLUMNS} FROM requests
WHERE project_id = {{project:UUID}} AND session_id = {{session:String}} AND spans_derived
    AND ts >= {{first:DateTime64(6, 'UTC')}} AND ts <= {{last:DateTime64(6, 'UTC')}}
{_FIRST}
"""
# The hours bound the search: the skip index of traces lets one granule in a thousand pass for each trace that is asked
# for.
_OF_TRACES = f"""
SELECT {_COLUMNS} FROM requests
WHERE project_id = {{project:UUID}} AND trace_id IN {{traces:Array(String)}} AND spans_derived
    AND toStartOfHour(ts) IN {{hours:Array(DateTime('UTC'))}} AND ts >= {{since:DateTime64(6, 'UTC')}}
{_FIRST}
"""
_AT = f"""
SELECT {_COLUMNS} FROM requests
WHERE project_id = {{project:UUID}} AND ts = {{ts:DateTime64(6, 'UTC')}} AND request_id = {{request:UUID}}
    AND spans_derived AND ts >= {{since:DateTime64(6, 'UTC')}}
"""
_decode = msgspec.json.Decoder(tuple[AttemptRecord, ...]).decode


def session_requests(
    project_id: UUID, session_id: str, limit: int, between: tuple[datetime, datetime] | None = None
) -> list[TracedRequest]:
    """The session's first `limit` requests with spans, of those between two times. They contain the first `limit`
    spans: each request begins with a span."""
    params: dict[str, Any] = {"project": project_id, "session": session_id, "since": first_moment().date()}
    [found] = visible.query(_RANGE, params, row=_Range, name="telemetry.requests_range")
    if not found.requests:
        return []
    first, last = between or (found.first, found.last)
    here = {**params, "first": first, "last": last, "limit": limit}
    return visible.query(_OF_SESSION, here, row=TracedRequest, name="telemetry.requests")


def trace_requests(
    project_id: UUID, trace_ids: Sequence[str], hours: Sequence[datetime], limit: int
) -> list[TracedRequest]:
    if not trace_ids:
        return []
    params = {"project": project_id, "traces": trace_ids, "hours": hours, "since": first_moment(), "limit": limit}
    return visible.query(_OF_TRACES, params, row=TracedRequest, name="telemetry.trace_requests")


def request_at(project_id: UUID, ts: datetime, request_id: UUID) -> list[TracedRequest]:
    params = {"project": project_id, "ts": ts, "request": request_id, "since": first_moment()}
    return visible.query(_AT, params, row=TracedRequest, name="telemetry.request")


def derived_spans(requests: Sequence[TracedRequest]) -> list[SpanRow]:
    return [span for row in requests for span in request_spans(_record(row))]


def first_moment() -> datetime:
    """Requests before this moment have no spans: a span expires by the day of its request."""
    today = datetime.now(UTC).date()
    return datetime.combine(today - timedelta(days=settings.TELEMETRY_RETENTION_DAYS - 1), time(), UTC)


def _record(row: TracedRequest) -> RequestRecord:
    differing = {
        "request_id": str(row.request_id),
        "project_id": str(row.project_id),
        "ts": (row.ts - _EPOCH) // _MICROSECOND,
        "outcome": Outcome(row.outcome),
        "rollout_id": "" if row.rollout_id == _NO_UUID else str(row.rollout_id),
        "attempts": _attempts(row),
    }
    return RequestRecord(**{**vars(row), **differing})


def _attempts(row: TracedRequest) -> tuple[AttemptRecord, ...]:
    try:
        return _decode(row.attempts) if row.attempts else ()
    except msgspec.DecodeError:
        # Rows of other writers may hold anything; the request itself has its span all the same.
        return ()
