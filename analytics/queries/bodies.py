"""Reads the stored bodies of several requests at once, within a bound of bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from analytics.queries import visible
from analytics.queries.request_cursor import RequestCursor, key_parameters
from analytics.queries.requests import Payload, get_payload_at

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
    params = {"project": project_id, **key_parameters(keys)}
    found = visible.query(_BODIES, params, row=BodiesRow, name="requests.bodies")
    return {row.request_id: row for row in found}


def get_payloads(project_id: UUID, keys: Sequence[RequestCursor]) -> Mapping[UUID, Payload]:
    """Returns the bodies by request, as `get_bodies` does, and those that it leaves out one by one."""
    times = {key.request_id: key.ts for key in keys}
    found: dict[UUID, Payload] = {}
    for request_id, row in get_bodies(project_id, keys).items():
        alone = get_payload_at(project_id, times[request_id], request_id) if row.is_left_out else None
        found[request_id] = alone or Payload(row.request, row.response)
    return found
