"""Reads the stored bodies of several requests at once, within a bound of bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from analytics.queries import visible
from analytics.queries.request_cursor import RequestCursor

# A body beyond the first bound, and all bodies that come after the second one is reached, are left in the store.
MAX_BODY_BYTES = 4 * 1024 * 1024
MAX_BYTES_AT_ONCE = 24 * 1024 * 1024


@dataclass(frozen=True)
class BodiesRow:
    """The bodies of a request and its answer in JSON, empty when `is_left_out` for their size."""

    request_id: UUID
    request: str
    response: str
    is_left_out: bool


_BODIES = f"""
SELECT p.request_id AS request_id, p.reached > {MAX_BYTES_AT_ONCE} OR p.size > {MAX_BODY_BYTES} AS is_left_out,
    if(is_left_out, '', p.request) AS request, if(is_left_out, '', p.response) AS response
FROM (
    SELECT b.request_id, b.request, b.response, length(b.request) + length(b.response) AS size,
        sum(size > {MAX_BODY_BYTES} ? 0 : size) OVER (ORDER BY b.ts, b.request_id) AS reached
    FROM payloads AS b
    PREWHERE b.project_id = {{project:UUID}} AND b.ts IN {{times:Array(DateTime64(6, 'UTC'))}}
        AND b.request_id IN {{ids:Array(UUID)}}
) AS p
"""


def get_bodies(project_id: UUID, keys: Sequence[RequestCursor]) -> Mapping[UUID, BodiesRow]:
    """Returns the bodies by request, without the requests that have none."""
    if not keys:
        return {}
    params = {"project": project_id, "times": [key.ts for key in keys], "ids": [key.request_id for key in keys]}
    found = visible.query(_BODIES, params, row=BodiesRow, name="requests.bodies")
    return {row.request_id: row for row in found}
