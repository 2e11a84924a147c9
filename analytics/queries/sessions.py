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
class SessionSums:
    """Sums over all requests of a session, even those that a filter leaves out; `user_id` is the first of its users by
    name."""

    session_id: str
    user_id: str
    started_at: datetime
    ended_at: datetime
    request_count: int
    total_tokens: int
    total_cost_usd: Decimal
    error_count: int
    unpriced_request_count: int


@dataclass(frozen=True)
class SessionSummary(SessionSums):
    session_hash: int


@dataclass(frozen=True)
class SessionFigures(SessionSums):
    """The figures that lists do not show; leaving them out saves a third of the lists' work."""

    cancelled_count: int
    duration_seconds: float
    average_latency_ms: float
    models_used: list[str]
    providers_used: list[str]
    operations_used: list[str]
    users: list[str]


@dataclass(frozen=True)
class SessionRow(SessionFigures):
    prompt_tokens: int
    completion_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int


# A session has a row per day and user, and more while parts are unmerged, so every figure is an aggregate.
_SUMS = """
    s.session_id AS session_id, minIf(s.user_id, s.user_id != '') AS user_id,
    min(s.started_at) AS started_at, max(s.ended_at) AS ended_at, sum(s.requests) AS request_count,
    sum(s.prompt_tokens) + sum(s.completion_tokens) AS total_tokens, sum(s.cost_usd) AS total_cost_usd,
    sum(s.errors) AS error_count, sum(s.unpriced) AS unpriced_request_count
"""
_REST = """
    sum(s.cancelled) AS cancelled_count,
    (toUnixTimestamp64Micro(max(s.ended_at)) - toUnixTimestamp64Micro(min(s.started_at))) / 1e6 AS duration_seconds,
    ifNotFinite(sum(s.latency_sum_ms) / (sum(s.requests) - sum(s.batched)), 0) AS average_latency_ms,
    arraySort(groupUniqArrayArray(s.models)) AS models_used,
    arraySort(groupUniqArrayArray(s.providers)) AS providers_used,
    arraySort(groupUniqArray(if(s.operation = '', 'chat', toString(s.operation)))) AS operations_used,
    arraySort(groupUniqArrayIf(s.user_id, s.user_id != '')) AS users,
    sum(s.prompt_tokens) AS prompt_tokens, sum(s.completion_tokens) AS completion_tokens,
    sum(s.cache_read_tokens) AS cache_read_tokens, sum(s.cache_write_tokens) AS cache_write_tokens
"""
_OF_PROJECT = "FROM session_days AS s WHERE s.project_id = {project:UUID}"
_BY_SESSION = "GROUP BY s.session_hash, s.session_id"
# The few granules of a page are found for all parts at once, not part by part as they are read.
_INDEX_FIRST = {"use_skip_indexes_on_data_read": 0}


def list_sessions(
    project_id: UUID, filters: SessionFilter, *, limit: int, offset: int
) -> tuple[int, list[SessionSummary]]:
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
    sql = f"SELECT {_SUMS}, {_REST} {_OF_PROJECT} AND {this} {_BY_SESSION}"
    rows = visible.query(sql, {"project": project_id, "session": session_id}, row=SessionRow, name="sessions.get")
    return rows[0] if rows else None


def sums_of(project_id: UUID, hashes: Sequence[int]) -> list[SessionSummary]:
    if not hashes:
        return []
    these = "s.session_hash IN {hashes:Array(UInt64)}"
    sql = f"SELECT s.session_hash AS session_hash, {_SUMS} {_OF_PROJECT} AND {these} {_BY_SESSION}"
    params = {"project": project_id, "hashes": hashes}
    rows = visible.query(sql, params, row=SessionSummary, name="sessions.list", database_settings=_INDEX_FIRST)
    place = {session_hash: number for number, session_hash in enumerate(hashes)}
    return sorted(rows, key=lambda row: (place[row.session_hash], row.session_id))
