"""The JSON of groups of errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TypedDict
from uuid import UUID

from analytics.queries.error_groups import ErrorGroupRow


class ErrorGroup(TypedDict):
    provider: str
    model: str
    type: str
    code: str
    status_codes: list[int]
    error_count: int
    percentage: float
    first_seen: datetime
    last_seen: datetime
    sample_request_id: UUID | None
    counts: list[int]


def error_group(
    row: ErrorGroupRow, *, sample: UUID | None, starts: Sequence[datetime], counts: Mapping[datetime, int]
) -> ErrorGroup:
    """Returns the group with the number of its errors in each interval; the percentage is of all errors."""
    return {
        "provider": row.provider,
        "model": row.model,
        "type": row.error_type,
        "code": row.error_code,
        "status_codes": row.status_codes,
        "error_count": row.requests,
        "percentage": 100 * row.requests / row.errors,
        "first_seen": row.first_at,
        "last_seen": row.last_at,
        "sample_request_id": sample,
        "counts": [counts.get(start, 0) for start in starts],
    }
