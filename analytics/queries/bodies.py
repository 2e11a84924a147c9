from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from analytics.queries import visible
from analytics.queries.request_cursor import KEYED, Keyed, RequestCursor, keyed
from analytics.queries.requests import Payload, StoredPayload, get_payload_at
from analytics.queries.shared_texts import whole_requests
from core.chunks import chunks

# A body beyond the first bound, and all bodies that come after the second one is reached, are left in the store.
MAX_BODY_BYTES = 4 * 1024 * 1024
MAX_BYTES_AT_ONCE = 24 * 1024 * 1024


@dataclass(frozen=True)
class BodiesRow:
    """Bodies in JSON, empty if `is_left_out` for their size."""

    request_id: UUID
    request: str
    response: str
    is_left_out: bool


@dataclass(frozen=True)
class _Row(StoredPayload):
    is_left_out: bool


_BODIES = f"""
SELECT p.request_id AS request_id, p.reached > {MAX_BYTES_AT_ONCE} OR p.size > {MAX_BODY_BYTES} AS is_left_out,
    if(is_left_out, '', p.request) AS request, if(is_left_out, '', p.response) AS response,
    if(is_left_out, [], p.shared) AS shared, p.shared_at AS shared_at
FROM (
    SELECT b.request_id, b.request, b.response, b.shared, b.shared_at,
        length(b.request) + b.shared_bytes + length(b.response) AS size,
        sum(size > {MAX_BODY_BYTES} ? 0 : size) OVER (ORDER BY b.ts, b.request_id) AS reached
    FROM payloads AS b
    PREWHERE {KEYED}
) AS p
"""


def get_bodies(project_id: UUID, keys: Sequence[RequestCursor]) -> Mapping[UUID, BodiesRow]:
    if not keys:
        return {}
    found = visible.query(_BODIES, keyed(project_id, keys), row=_Row, name="requests.bodies")
    whole = whole_requests(project_id, found)
    return {
        row.request_id: BodiesRow(row.request_id, whole[row.request_id], row.response, row.is_left_out) for row in found
    }


def get_payloads(project_id: UUID, keys: Sequence[RequestCursor]) -> Mapping[UUID, Payload]:
    """As `get_bodies`, and reads the bodies that it leaves out one by one."""
    times = {key.request_id: key.ts for key in keys}
    found: dict[UUID, Payload] = {}
    for request_id, row in get_bodies(project_id, keys).items():
        alone = get_payload_at(project_id, times[request_id], request_id) if row.is_left_out else None
        found[request_id] = alone or Payload(row.request, row.response)
    return found


_AT_ONCE = 50


@dataclass(frozen=True)
class BoundedBodies:
    """The bodies of a request and its answer in JSON, each empty when it is larger than the bound."""

    request_id: UUID
    is_too_large: bool
    request: str
    response: str


@dataclass(frozen=True)
class _BoundedRow(StoredPayload):
    is_too_large: bool


_BOUNDED = f"""
SELECT request_id, length(p.request) + p.shared_bytes > {{bytes:UInt64}} AS is_too_large,
    if(is_too_large, '', p.request) AS request, if(length(p.response) > {{bytes:UInt64}}, '', p.response) AS response,
    if(is_too_large, [], p.shared) AS shared, p.shared_at AS shared_at
FROM payloads AS p
PREWHERE {KEYED}
"""


def bounded_bodies(project_id: UUID, keys: Sequence[Keyed], *, max_bytes: int) -> Iterator[BoundedBodies]:
    """Yields the bodies of the requests that have one; `is_too_large` is said of the request's body."""
    for some in chunks(keys, _AT_ONCE):
        params = {**keyed(project_id, some), "bytes": max_bytes}
        rows = visible.query(_BOUNDED, params, row=_BoundedRow, name="requests.bounded_bodies")
        whole = whole_requests(project_id, rows)
        for row in rows:
            yield BoundedBodies(row.request_id, row.is_too_large, whole[row.request_id], row.response)
