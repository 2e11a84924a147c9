"""Reads the stored bodies of several requests, without those that are larger than the caller can use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from analytics.queries import visible
from analytics.queries.request_cursor import RequestCursor, key_parameters
from core.chunks import chunks

_AT_ONCE = 50


@dataclass(frozen=True)
class BoundedBodies:
    """The bodies of a request and its answer in JSON, each empty when it is larger than the bound."""

    request_id: UUID
    is_too_large: bool
    request: str
    response: str


_BODIES = """
SELECT request_id, length(p.request) > {bytes:UInt64} AS is_too_large,
    if(is_too_large, '', p.request) AS request, if(length(p.response) > {bytes:UInt64}, '', p.response) AS response
FROM payloads AS p
PREWHERE project_id = {project:UUID} AND ts IN {times:Array(DateTime64(6, 'UTC'))}
    AND request_id IN {ids:Array(UUID)}
"""


def bounded_bodies(project_id: UUID, keys: Sequence[RequestCursor], *, max_bytes: int) -> Iterator[BoundedBodies]:
    """Yields the bodies of the requests that have one; `is_too_large` is said of the request's body."""
    for some in chunks(keys, _AT_ONCE):
        params = {"project": project_id, "bytes": max_bytes, **key_parameters(some)}
        yield from visible.query(_BODIES, params, row=BoundedBodies, name="requests.bounded_bodies")
