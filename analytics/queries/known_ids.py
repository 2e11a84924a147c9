"""Finds which of many texts are ids of requests, sessions and users, in one query."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from analytics.identifiers import gateway_id
from analytics.queries import visible
from core.lookup.registry import Kind


@dataclass(frozen=True)
class KnownIdRow:
    """An id that the project knows; `kind` is the value of a `core.lookup.registry.Kind`."""

    kind: str
    id: str


# The bloom filters of these columns leave a granule or two for each id.
_SQL = f"""
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
    return visible.query(_SQL, params, row=KnownIdRow, name="lookup.known_ids")
