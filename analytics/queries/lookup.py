"""Finds requests, sessions and users by their whole ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from analytics.identifiers import gateway_id
from analytics.queries import visible
from core.lookup import Kind, Match, finds


@dataclass(frozen=True)
class _Found:
    id: str
    ts: datetime


# The bloom filters of these columns leave a granule or two.
_REQUEST = """
    SELECT toString(request_id) AS id, ts FROM requests
    PREWHERE project_id = {project:UUID} AND request_id = {request:UUID} LIMIT 1
"""
_SESSION = """
    SELECT session_id AS id, started_at AS ts FROM session_days
    PREWHERE project_id = {project:UUID} AND session_hash = cityHash64({text:String}) AND session_id = {text:String}
    LIMIT 1
"""
_USER = """
    SELECT user_id AS id, toDateTime64(day, 6, 'UTC') AS ts FROM users_daily
    PREWHERE project_id = {project:UUID} AND user_id = {text:String} LIMIT 1
"""


@finds(Kind.REQUEST)
def find_request(project_id: UUID, text: str) -> Sequence[Match]:
    identity = gateway_id(text)
    if identity is None:
        return []
    params = {"project": project_id, "request": identity}
    rows = visible.query(_REQUEST, params, row=_Found, name="lookup.request")
    return [Match(Kind.REQUEST, row.id, row.id) for row in rows]


@finds(Kind.SESSION)
def find_session(project_id: UUID, text: str) -> Sequence[Match]:
    return _find(Kind.SESSION, _SESSION, project_id, text)


@finds(Kind.USER)
def find_user(project_id: UUID, text: str) -> Sequence[Match]:
    return _find(Kind.USER, _USER, project_id, text)


def _find(kind: Kind, sql: str, project_id: UUID, text: str) -> Sequence[Match]:
    rows = visible.query(sql, {"project": project_id, "text": text}, row=_Found, name=f"lookup.{kind}")
    return [Match(kind, row.id, row.id) for row in rows]
