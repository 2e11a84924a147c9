from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from analytics.queries import visible
from analytics.queries.request_filters import RequestFilter
from analytics.queries.requests import request_conditions

NEWEST = 100_000
"""A sample is drawn from so many of the newest requests that match, so that its cost has a bound."""


@dataclass(frozen=True)
class SampledRow:
    request_id: UUID
    ts: datetime


def sample_requests(project_id: UUID, filters: RequestFilter, *, size: int) -> list[SampledRow]:
    """Up to `size` of the newest matching requests, in the order of a hash of their ids.

    The same filter gives the same requests while no others arrive, and any prefix of them is a fair sample too. Raises
    the errors of the store.
    """
    where, params = request_conditions(project_id, filters)
    sql = f"""
SELECT request_id, ts FROM (
    SELECT request_id, ts FROM requests WHERE {where} ORDER BY ts DESC, request_id DESC LIMIT {{newest:UInt64}}
) ORDER BY sipHash64(request_id), request_id LIMIT {{size:UInt64}}
"""
    return visible.query(sql, {**params, "newest": NEWEST, "size": size}, row=SampledRow, name="reviews.sample")
