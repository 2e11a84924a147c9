from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import accumulate
from typing import Any
from uuid import UUID

from analytics.queries import visible
from analytics.queries.request_cursor import RequestCursor
from analytics.queries.requests import COLUMNS, RequestRow

# A page up to this offset is read at once, with all columns of the requests before it. For a deeper page the keys of
# its ends are read first.
_SHALLOW = 100


@dataclass(frozen=True)
class _Day:
    day: date
    requests: int
    started_at: datetime
    ended_at: datetime


@dataclass(frozen=True)
class _Stretch:
    start: datetime
    end: datetime
    offset: int


_DAYS = """
SELECT s.day AS day, sum(s.requests) AS requests, min(s.started_at) AS started_at, max(s.ended_at) AS ended_at
FROM session_days AS s
WHERE s.project_id = {project:UUID}
    AND s.session_hash = cityHash64({session:String}) AND s.session_id = {session:String}
GROUP BY day ORDER BY day
"""
_ROWS = (
    "FROM requests AS r WHERE r.project_id = {project:UUID} AND r.session_id = {session:String}"
    " AND r.ts >= {start:DateTime64(6, 'UTC')} AND r.ts <= {end:DateTime64(6, 'UTC')}"
)
# Requests of the same microsecond are ordered by id.
_FROM_KEY = "AND (r.ts > {start:DateTime64(6, 'UTC')} OR r.request_id >= {request:UUID})"
_BEHIND_KEY = "AND (r.ts > {start:DateTime64(6, 'UTC')} OR r.request_id > {after:UUID})"
_TOWARDS = {True: "r.ts <= {far:DateTime64(6, 'UTC')}", False: "r.ts >= {far:DateTime64(6, 'UTC')}"}
# The first condition of each uses the primary key, which the second one alone would not.
_BESIDE = {
    True: "r.ts >= {ts:DateTime64(6, 'UTC')} AND (r.ts > {ts:DateTime64(6, 'UTC')} OR r.request_id > {request:UUID})"
    " ORDER BY r.ts, r.request_id LIMIT 1",
    False: "r.ts <= {ts:DateTime64(6, 'UTC')} AND (r.ts < {ts:DateTime64(6, 'UTC')} OR r.request_id < {request:UUID})"
    " ORDER BY r.ts DESC, r.request_id DESC LIMIT 1",
}
_ORDER = "ORDER BY r.ts, r.request_id LIMIT {limit:UInt64} OFFSET {offset:UInt64}"


def list_session_requests(
    project_id: UUID, session_id: str, *, limit: int, offset: int
) -> tuple[int, list[RequestRow]] | None:
    """The number of the session's requests and one page of them; None if there is no such session.

    A long session is scattered over all rows of its project. Its requests per day tell which days the page is on, and
    only those are read.
    """
    params = {"project": project_id, "session": session_id}
    days = visible.query(_DAYS, params, row=_Day, name="session_requests.days")
    if not days:
        return None
    count = sum(day.requests for day in days)
    stretch = _locate(days, offset, limit)
    if stretch is None:
        return count, []
    stretch_params = {**params, "start": stretch.start, "end": stretch.end, "limit": limit, "offset": stretch.offset}
    return count, _deep(stretch_params) if stretch.offset > _SHALLOW else _page(stretch_params)


def list_requests_after(
    project_id: UUID, session_id: str, *, after: RequestCursor | None, limit: int
) -> list[RequestRow] | None:
    """The requests after the cursor, the earliest first; None if there is no such session."""
    params = {"project": project_id, "session": session_id}
    days = visible.query(_DAYS, params, row=_Day, name="session_requests.days")
    if not days:
        return None
    if after:
        days = [day for day in days if day.ended_at >= after.ts]
    # The days up to here hold the page, even when all of the first one lie before the cursor.
    stretch = _locate(days, 0, limit + (days[0].requests if days and after else 0)) if days else None
    if stretch is None:
        return []
    here = {**params, "start": stretch.start, "end": stretch.end, "limit": limit, "offset": 0}
    if after is None:
        return _page(here)
    return _page({**here, "start": max(stretch.start, after.ts), "after": after.request_id}, _BEHIND_KEY)


def find_neighbour(project_id: UUID, request: RequestRow, *, later: bool) -> RequestCursor | None:
    params: dict[str, Any] = {"project": project_id, "ts": request.ts, "request": request.request_id}
    where = "r.project_id = {project:UUID}"
    if request.session_id:
        params["session"] = request.session_id
        where += " AND r.session_id = {session:String} AND " + _TOWARDS[later]
        params["far"] = _far_end(params, request.ts, later=later)
    sql = f"SELECT r.ts AS ts, r.request_id AS request_id FROM requests AS r WHERE {where} AND {_BESIDE[later]}"
    found = visible.query(sql, params, row=RequestCursor, name="session_requests.neighbour")
    return found[0] if found else None


def _far_end(params: Mapping[str, Any], ts: datetime, *, later: bool) -> datetime:
    """The first time, going up or down from `ts`, by which the session certainly has another request; `ts` itself if
    only one of the same microsecond is possible."""
    days = visible.query(_DAYS, params, row=_Day, name="session_requests.days")
    if later:
        return next((day.ended_at for day in days if day.ended_at > ts), ts)
    return next((day.started_at for day in reversed(days) if day.started_at < ts), ts)


def _page(params: dict[str, Any], condition: str = "") -> list[RequestRow]:
    sql = f"SELECT {COLUMNS} {_ROWS} {condition} {_ORDER}"
    return visible.query(sql, params, row=RequestRow, name="session_requests.page")


def _deep(params: dict[str, Any]) -> list[RequestRow]:
    """Reads the page's keys from narrow columns first, then all columns from its first key to its last."""
    sql = f"SELECT r.ts AS ts, r.request_id AS request_id {_ROWS} {_ORDER}"
    keys = visible.query(sql, params, row=RequestCursor, name="session_requests.keys")
    if not keys:
        return []
    first, last = keys[0], keys[-1]
    here = {**params, "start": first.ts, "end": last.ts, "request": first.request_id, "offset": 0}
    return _page(here, _FROM_KEY)


def _locate(days: Sequence[_Day], offset: int, limit: int) -> _Stretch | None:
    reached = list(accumulate(day.requests for day in days))
    first = bisect_right(reached, offset)
    if first == len(days):
        return None
    last = min(bisect_left(reached, offset + limit), len(days) - 1)
    before = reached[first] - days[first].requests
    return _Stretch(days[first].started_at, days[last].ended_at, offset - before)
