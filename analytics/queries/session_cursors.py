"""Lists sessions from a cursor, the latest active first, with filters over whole sessions.

Rows of `session_days` are read back from the cursor's day, a few days and then more, until the page is full: the end of
a session is in its newest row.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.conf import settings

from analytics.queries import visible
from analytics.queries.session_filters import SessionFilter, conditions_of
from analytics.queries.sessions import SessionSummary, sums_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FORM = re.compile(r"(-?)([0-9]{1,16})-([0-9]{1,20})", re.ASCII)
_MAX_HASH = 2**64 - 1
_FIRST_DAYS, _WIDER = 2, 5
# A range that ends within this time of now has no later requests worth a query of their own.
_NOW = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class SessionCursor:
    """The last session of a page, before the next one; with `is_back` the first, after the previous page."""

    ended_at: datetime
    session_hash: int
    is_back: bool = False

    def __str__(self) -> str:
        return f"{'-' if self.is_back else ''}{(self.ended_at - _EPOCH) // _MICROSECOND}-{self.session_hash}"


def parse_session_cursor(text: str) -> SessionCursor | None:
    found = _FORM.fullmatch(text)
    if found is None or int(found[3]) > _MAX_HASH:
        return None
    return SessionCursor(_EPOCH + int(found[2]) * _MICROSECOND, int(found[3]), is_back=bool(found[1]))


@dataclass(frozen=True)
class WholeSessionFilter:
    """A filter with bounds of a whole session's cost and of its feedback: each score from 1 to 5 keeps the sessions
    that got it."""

    sessions: SessionFilter = field(default_factory=SessionFilter)
    min_cost_usd: Decimal | None = None
    max_cost_usd: Decimal | None = None
    feedback: tuple[int, ...] = ()

    @property
    def is_plain(self) -> bool:
        """True if each row of `session_days` decides by itself, without the sums of its whole session."""
        return not self.feedback and self.min_cost_usd is None and self.max_cost_usd is None


@dataclass(frozen=True)
class _Key:
    session_hash: int
    last_at: datetime


_PAGE = """
SELECT s.session_hash AS session_hash, max(s.ended_at) AS last_at
FROM session_days AS s WHERE {where} AND s.day >= {{since:Date}}
GROUP BY s.session_hash HAVING {having}
ORDER BY {order} LIMIT {{limit:UInt64}}
"""
_NEWEST_FIRST, _OLDEST_FIRST = "last_at DESC, session_hash", "last_at, session_hash DESC"
_COUNT = """
SELECT count() AS count FROM (
    SELECT s.session_hash AS session_hash, max(s.ended_at) AS last_at
    FROM session_days AS s WHERE {where} AND s.day >= {{since:Date}} GROUP BY s.session_hash HAVING {having}
)
"""
_MATCHING = "s.session_hash IN (SELECT s.session_hash FROM session_days AS s WHERE {matching})"
# The sums of a whole session need its rows of all days. Only sessions with a row in the range or later can match, and
# grouping these few takes half the time of grouping all.
_SINCE = (
    "s.session_hash IN (SELECT l.session_hash FROM session_days AS l"
    " WHERE l.project_id = {project:UUID} AND l.day >= toDate({start:DateTime64(6, 'UTC')}, 'UTC'))"
)
_WITH_FEEDBACK = (
    "s.session_hash IN (SELECT cityHash64(f.session_id) FROM feedback AS f FINAL"
    " WHERE f.project_id = {project:UUID} AND f.score IN {feedback:Array(UInt8)})"
)
_BEHIND = (
    "(last_at < {cursor:DateTime64(6, 'UTC')}"
    " OR (last_at = {cursor:DateTime64(6, 'UTC')} AND session_hash > {cursor_hash:UInt64}))"
)
_BEFORE = (
    "(last_at > {cursor:DateTime64(6, 'UTC')}"
    " OR (last_at = {cursor:DateTime64(6, 'UTC')} AND session_hash < {cursor_hash:UInt64}))"
)


def count_whole_sessions(project_id: UUID, filters: WholeSessionFilter) -> int:
    where, having, params = _conditions(project_id, filters, None)
    sql = _COUNT.format(where=where, having=having)
    return visible.query(sql, {**params, "since": _oldest_day(filters)}, row=int, name="sessions.count_whole")[0]


def list_sessions_after(
    project_id: UUID, filters: WholeSessionFilter, *, after: SessionCursor | None, limit: int
) -> list[SessionSummary]:
    """At most `limit` sessions after the cursor, or before one that leads back, the latest active first."""
    where, having, params = _conditions(project_id, filters, after)
    if after is not None and after.is_back:
        sql = _PAGE.format(where=where, having=having, order=_OLDEST_FIRST)
        since = _EPOCH.date() if _is_of_whole(filters) else after.ended_at.date()
        keys = visible.query(sql, {**params, "since": since, "limit": limit}, row=_Key, name="sessions.before")
        return sums_of(project_id, [key.session_hash for key in reversed(keys)])
    sql = _PAGE.format(where=where, having=having, order=_NEWEST_FIRST)
    newest = (after.ended_at if after else datetime.now(UTC)).date()
    oldest = _oldest_day(filters)
    days = (newest - oldest).days + 1 if _is_of_whole(filters) else _FIRST_DAYS
    while True:
        since = max(newest - timedelta(days=min(days, (newest - oldest).days + 1)), oldest)
        page = {**params, "since": since, "limit": limit}
        keys = visible.query(sql, page, row=_Key, name="sessions.after")
        if len(keys) >= limit or since <= oldest:
            return sums_of(project_id, [key.session_hash for key in keys])
        days *= _WIDER


def _oldest_day(filters: WholeSessionFilter) -> date:
    start = filters.sessions.start
    return _EPOCH.date() if start is None or _is_of_whole(filters) else start.date()


def _is_of_whole(filters: WholeSessionFilter) -> bool:
    return filters.min_cost_usd is not None or filters.max_cost_usd is not None


def _conditions(
    project_id: UUID, filters: WholeSessionFilter, after: SessionCursor | None
) -> tuple[str, str, dict[str, Any]]:
    sessions = filters.sessions
    of_rows = conditions_of(project_id, sessions)
    where, having, params = [of_rows.of_session], ["1"], dict(of_rows.params)
    if sessions.end and sessions.end < datetime.now(UTC) - _NOW:
        where.append(_MATCHING.format(matching=of_rows.matching))
    elif sessions.start:
        having.append("last_at >= {start:DateTime64(6, 'UTC')}")
        if _is_of_whole(filters):
            where.append(_SINCE)
    if filters.feedback:
        where.append(_WITH_FEEDBACK)
        params["feedback"] = list(filters.feedback)
    for name, sign in (("min_cost_usd", ">="), ("max_cost_usd", "<=")):
        if getattr(filters, name) is not None:
            having.append(f"sum(s.cost_usd) {sign} {{{name}:Decimal(38, 10)}}")
            params[name] = getattr(filters, name)
    if settings.SESSION_LISTING_DELAY_MINUTES:
        having.append("last_at <= {quiet_since:DateTime64(6, 'UTC')}")
        params["quiet_since"] = datetime.now(UTC) - timedelta(minutes=settings.SESSION_LISTING_DELAY_MINUTES)
    if after:
        having.append(_BEFORE if after.is_back else _BEHIND)
        params |= {"cursor": after.ended_at, "cursor_hash": after.session_hash}
    return " AND ".join(where), " AND ".join(having), params
