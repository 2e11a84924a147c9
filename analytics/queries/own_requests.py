"""Finds the latest request that an application of a project sent: none of the playground, experiments or judges."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from analytics.queries import visible

_SQL = """
SELECT request_id, ts, outcome, model, error_code FROM requests
PREWHERE project_id = {{project:UUID}} AND source = 'gateway' {conditions}
ORDER BY ts DESC LIMIT 1
"""


@dataclass(frozen=True)
class OwnRequestRow:
    request_id: UUID
    ts: datetime
    outcome: str
    model: str
    error_code: str


def latest_own_request(
    project_id: UUID, *, api_key_id: int | None = None, since: datetime | None = None
) -> OwnRequestRow | None:
    """Returns the project's latest request by the gateway; with `api_key_id` that of one key. All rows from
    `since` on are read for a key without a request. Raises the errors of the store."""
    conditions, params = "", dict[str, Any](project=project_id)
    if api_key_id is not None:
        conditions += " AND api_key_id = {key:UInt64}"
        params["key"] = api_key_id
    if since is not None:
        conditions += " AND ts >= {since:DateTime64(6, 'UTC')}"
        params["since"] = since
    rows = visible.query(_SQL.format(conditions=conditions), params, row=OwnRequestRow, name="requests.own")
    return rows[0] if rows else None
