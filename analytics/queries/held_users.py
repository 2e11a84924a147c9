"""Finds what the request log holds of an end user: the requests that name the user, and the user's own sessions, whole.

A session is the user's own if each of its requests names this user or none.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from analytics.queries import visible
from analytics.reconciliation.comparison import LIMITS


@dataclass(frozen=True)
class HeldData:
    """`last_seen` is null where nothing is held."""

    request_count: int
    session_count: int
    last_seen: datetime | None


OWN_SESSIONS = """
SELECT session_id FROM requests WHERE project_id = {project:UUID} AND session_id IN (
    SELECT session_id FROM requests WHERE project_id = {project:UUID} AND user_id = {user:String}
        AND session_id != '' AND ts <= {until:DateTime64(6, 'UTC')}
) GROUP BY session_id HAVING countIf(user_id NOT IN ('', {user:String})) = 0
"""
_HELD = f"""
SELECT count() AS request_count, uniqExactIf(session_id, session_id != '') AS session_count,
    if(request_count = 0, NULL, max(ts)) AS last_seen
FROM requests WHERE project_id = {{project:UUID}} AND ts <= {{until:DateTime64(6, 'UTC')}}
    AND (user_id = {{user:String}} OR session_id IN ({OWN_SESSIONS}))
"""


def held_data(project_id: UUID, user_id: str, until: datetime) -> HeldData:
    """Counts what an erasure would make anonymous."""
    values = {"project": project_id, "user": user_id, "until": until}
    return visible.query(_HELD, values, row=HeldData, name="users.held", database_settings=LIMITS)[0]
