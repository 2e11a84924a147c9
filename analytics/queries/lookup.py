from __future__ import annotations

from collections.abc import Collection, Sequence
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


@dataclass(frozen=True)
class KnownIdRow:
    """An id that the project knows; `kind` is the value of a `core.lookup.registry.Kind`."""

    kind: str
    id: str


# The bloom filters of these columns leave a granule or two for each id.
_KNOWN = f"""
SELECT '{Kind.REQUEST}' AS kind, toString(request_id) AS id FROM requests
PREWHERE project_id = {{project:UUID}} AND request_id IN {{requests:Array(UUID)}} LIMIT 1 BY request_id
UNION ALL
SELECT '{Kind.SESSION}' AS kind, session_id AS id FROM session_days
PREWHERE project_id = {{project:UUID}} AND session_hash IN arrayMap(text -> cityHash64(text), {{texts:Array(String)}})
    AND session_id IN {{texts:Array(String)}} LIMIT 1 BY session_id
UNION ALL
SELECT '{Kind.USER}' AS kind, user_id AS id FROM users_daily
PREWHERE project_id = {{project:UUID}} AND user_id IN {{texts:Array(String)}} LIMIT 1 BY user_id
"""


def known_ids(project_id: UUID, texts: Collection[str]) -> list[KnownIdRow]:
    """Returns the requests, sessions and users of the project among `texts`. Raises the errors of the store."""
    if not texts:
        return []
    requests = [identity for text in texts if (identity := gateway_id(text)) is not None]
    params = {"project": project_id, "requests": requests, "texts": list(texts)}
    return visible.query(_KNOWN, params, row=KnownIdRow, name="lookup.known_ids")
