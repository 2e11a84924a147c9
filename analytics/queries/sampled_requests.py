"""Samples the requests of a range of time, and reads the bodies of those that have one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from analytics.queries import visible


@dataclass(frozen=True)
class SampledRequest:
    """The key of a request in the store, and how it ended."""

    request_id: UUID
    ts: datetime
    error_code: str


@dataclass(frozen=True)
class Sample:
    """Some of the `total` requests of a range. Every prefix of `requests` is a random sample of them, too."""

    total: int
    requests: list[SampledRequest]


@dataclass(frozen=True)
class _Count:
    count: int


@dataclass(frozen=True)
class _Body:
    request_id: UUID
    request: str


_RANGE = (
    "project_id = {project:UUID} AND ts >= {start:DateTime64(6, 'UTC')} AND ts <= {end:DateTime64(6, 'UTC')}"
    " AND source = {source:String}"
)


def sample_requests(project_id: UUID, start: datetime, end: datetime, *, source: str, limit: int) -> Sample:
    """Returns at most `limit` requests of the range, in the order of a hash of their ids.

    The same range has the same sample whenever it is drawn. Three narrow columns are read of each request, and no text.
    """
    params = {"project": project_id, "start": start, "end": end, "source": source}
    count = f"SELECT count() AS count FROM requests WHERE {_RANGE}"
    total = visible.query(count, params, row=_Count, name="samples.count")[0].count
    if not total:
        return Sample(0, [])
    # The plain ids are sorted first, so that error codes are read for the chosen rows alone.
    sql = f"""
SELECT request_id, ts, error_code FROM requests
WHERE {_RANGE} AND (ts, request_id) IN (
    SELECT ts, request_id FROM requests WHERE {_RANGE}
    ORDER BY cityHash64(request_id), request_id LIMIT {{limit:UInt64}}
) ORDER BY cityHash64(request_id), request_id LIMIT {{limit:UInt64}}
"""
    return Sample(total, visible.query(sql, {**params, "limit": limit}, row=SampledRequest, name="samples.list"))


def request_bodies(project_id: UUID, requests: Sequence[SampledRequest]) -> dict[UUID, bytes]:
    """Returns the stored bodies by the id of their request, as the gateway got them; requests without one are left
    out."""
    sql = """
SELECT request_id, request FROM payloads
PREWHERE project_id = {project:UUID} AND ts IN {times:Array(DateTime64(6, 'UTC'))}
    AND request_id IN {ids:Array(UUID)}
WHERE request != ''
"""
    params = {
        "project": project_id,
        "times": [request.ts for request in requests],
        "ids": [request.request_id for request in requests],
    }
    found = visible.query(sql, params, row=_Body, name="samples.bodies")
    return {body.request_id: body.request.encode("utf-8", "surrogateescape") for body in found}
