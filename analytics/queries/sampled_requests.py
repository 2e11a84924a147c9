from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from analytics.queries import visible
from analytics.queries.request_cursor import KEYED, keyed
from analytics.queries.shared_texts import StoredRequest, whole_requests


@dataclass(frozen=True)
class SampledRequest:
    request_id: UUID
    ts: datetime
    error_code: str


@dataclass(frozen=True)
class Sample:
    """Some of the `total` requests of a range. Every prefix of `requests` is a random sample too."""

    total: int
    requests: list[SampledRequest]


_RANGE = (
    "project_id = {project:UUID} AND ts >= {start:DateTime64(6, 'UTC')} AND ts <= {end:DateTime64(6, 'UTC')}"
    " AND source = {source:String}"
)


def sample_requests(project_id: UUID, start: datetime, end: datetime, *, source: str, limit: int) -> Sample:
    """Requests of the range, in the order of a hash of their ids.

    The same range always has the same sample. Reads three narrow columns of each request, and no text.
    """
    params = {"project": project_id, "start": start, "end": end, "source": source}
    count = f"SELECT count() FROM requests WHERE {_RANGE}"
    total = visible.query(count, params, row=int, name="samples.count")[0]
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
    sql = f"SELECT request_id, request, shared, shared_at FROM payloads PREWHERE {KEYED} WHERE request != ''"
    found = visible.query(sql, keyed(project_id, requests), row=StoredRequest, name="samples.bodies")
    whole = whole_requests(project_id, found)
    return {request_id: body.encode("utf-8", "surrogateescape") for request_id, body in whole.items() if body}
