"""The JSON of the requests beside a request."""

from __future__ import annotations

from typing import TypedDict
from uuid import UUID


class RequestNeighbours(TypedDict):
    """`previous` and `next` are of the same session; without a `session_id` they are of the whole log."""

    session_id: str | None
    previous: UUID | None
    next: UUID | None
