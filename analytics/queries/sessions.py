"""Lists the sessions of a project, and sums up one session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import partial
from uuid import UUID

from analytics.queries import visible
from analytics.queries.session_filters import SessionFilter
from analytics.queries.session_pages import (
    count_sessions,
    find_continued,
    find_newest,
    find_page,
    is_of_newest,
    is_of_past,
)


@dataclass(frozen=True)
class SessionSummary:
    """A session in a list, with sums over all its requests, also those that a filter leaves out. `users` are the named
    ones."""

    session_hash: int
    session_id: str
    users: list[str]
    started_at: datetime
    ended_at: datetime
    request_count: int
    error_count: int
    unpriced_count: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: Decimal


@dataclass(frozen=True)
class SessionRow(SessionSummary):
    """A session with the figures that lists do not show: leaving them out saves lists a third of their work."""

    cancelled_count: int
    cache_read_tokens: int
    cache_write_tokens: int
    latency_sum_ms: int
    batched_count: int
    models: list[str]
    providers: list[str]
    operations: list[str]


# A session has a row per day and user, and more while parts are unmerged, so every figure is an aggregate.
_SUMMARY = """
    s.session_hash AS session_hash, s.session_id AS session_id,
    arraySort(groupUniqArrayIf(s.user_id, s.user_id != '')) AS users,
    min(s.started_at) AS started_at, max(s.ended_at) AS ended_at,
    sum(s.requests) AS request_count, sum(s.errors) AS error_count, sum(s.unpriced) AS unpriced_count,
    sum(s.prompt_tokens) AS prompt_tokens, sum(s.completion_tokens) AS completion_tokens, sum(s.cost_usd) AS cost_usd
"""
_REST = """
    sum(s.cancelled) AS cancelled_count,
    sum(s.cache_read_tokens) AS cache_read_tokens, sum(s.cache_write_tokens) AS cache_write_tokens,
    sum(s.latency_sum_ms) AS latency_sum_ms, sum(s.batched) AS batched_count,
    arraySort(groupUniqArrayArray(s.models)) AS models, arraySort(groupUniqArrayArray(s.providers)) AS providers,
    arraySort(groupUniqArray(if(s.operation = '', 'chat', toString(s.operation)))) AS operations
"""
_OF_PROJECT = "FROM session_days AS s WHERE s.project_id = {project:UUID}"
_BY_SESSION = "GROUP BY s.session_hash, s.session_id"
# The few granules of a page are found for all parts at once, not part by part as they are read.
_INDEX_FIRST = {"use_skip_indexes_on_data_read": 0}


def list_sessions(
    project_id: UUID, filters: SessionFilter, *, limit: int, offset: int
) -> tuple[int, list[SessionSummary]]:
    """Returns the number of sessions and one page of them, the latest active first."""
    find = find_newest if is_of_newest(filters) else find_continued if is_of_past(filters) else None
    if find:
        first = partial(_first, find, project_id, filters, limit=limit, offset=offset)
        count, rows = visible.both_visible(project_id, partial(count_sessions, project_id, filters), first)
        if rows or offset >= count:
            return count, rows
    page = find_page(project_id, filters, limit=limit, offset=offset)
    return page.count, sums_of(project_id, page.hashes)


def _first(
    find: Callable[..., Sequence[int]], project_id: UUID, filters: SessionFilter, *, limit: int, offset: int
) -> list[SessionSummary]:
    return sums_of(project_id, find(project_id, filters, limit=limit, offset=offset))


def get_session(project_id: UUID, session_id: str) -> SessionRow | None:
    this = "s.session_hash = cityHash64({session:String}) AND s.session_id = {session:String}"
    sql = f"SELECT {_SUMMARY}, {_REST} {_OF_PROJECT} AND {this} {_BY_SESSION}"
    rows = visible.query(sql, {"project": project_id, "session": session_id}, row=SessionRow, name="sessions.get")
    return rows[0] if rows else None


def sums_of(project_id: UUID, hashes: Sequence[int]) -> list[SessionSummary]:
    """Returns the sessions of these hashes in the same order."""
    if not hashes:
        return []
    sql = f"SELECT {_SUMMARY} {_OF_PROJECT} AND s.session_hash IN {{hashes:Array(UInt64)}} {_BY_SESSION}"
    params = {"project": project_id, "hashes": hashes}
    rows = visible.query(sql, params, row=SessionSummary, name="sessions.list", database_settings=_INDEX_FIRST)
    place = {session_hash: number for number, session_hash in enumerate(hashes)}
    return sorted(rows, key=lambda row: (place[row.session_hash], row.session_id))
