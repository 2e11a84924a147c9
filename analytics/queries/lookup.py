"""Finds requests, sessions and users by their whole ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from analytics.identifiers import gateway_id
from analytics.queries import visible
from analytics.queries.requests import get_request_time
from core.lookup.registry import Kind, Match, finds


@dataclass(frozen=True)
class _Found:
    id: str
    ts: datetime


# The bloom filters of these columns leave a granule or two.
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
    if identity is None or get_request_time(project_id, identity) is None:
        return []
    return [Match(Kind.REQUEST, str(identity), str(identity))]


@finds(Kind.SESSION)
def find_session(project_id: UUID, text: str) -> Sequence[Match]:
    return _find(Kind.SESSION, _SESSION, project_id, text)


@finds(Kind.USER)
def find_user(project_id: UUID, text: str) -> Sequence[Match]:
    return _find(Kind.USER, _USER, project_id, text)


def _find(kind: Kind, sql: str, project_id: UUID, text: str) -> Sequence[Match]:
    rows = visible.query(sql, {"project": project_id, "text": text}, row=_Found, name=f"lookup.{kind}")
    return [Match(kind, row.id, row.id) for row in rows]
