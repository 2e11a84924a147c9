"""Which sessions does a project have, and what came together in one of them?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.conf import settings

from analytics.clickhouse import client


@dataclass(frozen=True)
class SessionFilter:
    """`start` and `end` keep sessions with some activity between them; `name_pattern` is a LIKE pattern of the id."""

    user_id: str = ""
    name_pattern: str = ""
    start: datetime | None = None
    end: datetime | None = None


@dataclass(frozen=True)
class SessionRow:
    """Sums over all requests of a session, whatever part of it a filter found."""

    session_id: str
    user_id: str
    started_at: datetime
    ended_at: datetime
    request_count: int
    error_count: int
    unpriced_count: int
    prompt_tokens: int
    completion_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cost_usd: Decimal
    latency_sum_ms: int
    models: list[str]


@dataclass(frozen=True)
class _Count:
    count: int


# A session has a row per day and part, so every figure is an aggregate.
_SUMS = """
SELECT
    s.session_id AS session_id, arrayElement(arraySort(groupUniqArrayArray(s.users)), 1) AS user_id,
    min(s.started_at) AS started_at, max(s.ended_at) AS ended_at,
    sum(s.requests) AS request_count, sum(s.errors) AS error_count, sum(s.unpriced) AS unpriced_count,
    sum(s.prompt_tokens) AS prompt_tokens, sum(s.completion_tokens) AS completion_tokens,
    sum(s.cache_read_tokens) AS cache_read_tokens, sum(s.cache_write_tokens) AS cache_write_tokens,
    sum(s.cost_usd) AS cost_usd, sum(s.latency_sum_ms) AS latency_sum_ms,
    arraySort(groupUniqArrayArray(s.models)) AS models
FROM sessions AS s
"""
_ORDER = "ORDER BY max(s.ended_at) DESC, s.session_id"


def list_sessions(project_id: UUID, wanted: SessionFilter, *, limit: int, offset: int) -> tuple[int, list[SessionRow]]:
    """How many sessions there are, and one page of them, the latest active first."""
    matching, params = _matching(project_id, wanted)
    # The keys of the page first, from few columns; the wide sums are then made for those alone.
    page = f"SELECT s.session_id FROM {matching} {_ORDER} LIMIT {{limit:UInt64}} OFFSET {{offset:UInt64}}"  # noqa: S608 - fragments of this file, values are parameters
    sql = f"{_SUMS} WHERE s.project_id = {{project:UUID}} AND s.session_id IN ({page}) GROUP BY s.session_id {_ORDER}"
    rows = client.query(sql, {**params, "limit": limit, "offset": offset}, row=SessionRow, name="sessions.list")
    if len(rows) < limit and (rows or not offset):
        return offset + len(rows), rows
    count = f"SELECT count() AS count FROM (SELECT s.session_id FROM {matching})"  # noqa: S608 - as above
    return client.query(count, params, row=_Count, name="sessions.count")[0].count, rows


def get_session(project_id: UUID, session_id: str) -> SessionRow | None:
    sql = f"{_SUMS} WHERE s.project_id = {{project:UUID}} AND s.session_id = {{session:String}} GROUP BY s.session_id"
    rows = client.query(sql, {"project": project_id, "session": session_id}, row=SessionRow, name="sessions.get")
    return rows[0] if rows else None


def _matching(project_id: UUID, wanted: SessionFilter) -> tuple[str, dict[str, Any]]:
    """`sessions AS s … GROUP BY … HAVING …` for the sessions that match, and its parameters."""
    where, having = "s.project_id = {project:UUID}", ["1"]
    params: dict[str, Any] = {"project": project_id}
    if wanted.name_pattern:
        where += " AND s.session_id LIKE {pattern:String}"
        params["pattern"] = wanted.name_pattern
    if wanted.user_id:
        having.append("has(groupUniqArrayArray(s.users), {user:String})")
        params["user"] = wanted.user_id
    if wanted.start:
        having.append("max(s.ended_at) >= {start:DateTime64(6, 'UTC')}")
        params["start"] = wanted.start
    if wanted.end:
        having.append("min(s.started_at) <= {end:DateTime64(6, 'UTC')}")
        params["end"] = wanted.end
    if settings.SESSION_LISTING_DELAY_MINUTES:
        having.append("max(s.ended_at) <= {quiet_since:DateTime64(6, 'UTC')}")
        params["quiet_since"] = datetime.now(UTC) - timedelta(minutes=settings.SESSION_LISTING_DELAY_MINUTES)
    return f"sessions AS s WHERE {where} GROUP BY s.session_id HAVING {' AND '.join(having)}", params
