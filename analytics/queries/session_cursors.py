"""Lists sessions from a cursor, in any order, with filters over whole sessions.

For the latest active first, rows of `session_days` are read back from the cursor's day, a few days and then more, until
the page is full: the end of a session is in its newest row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.conf import settings

from analytics.queries import visible
from analytics.queries.session_filters import SessionFilter, conditions_of
from analytics.queries.session_sorting import LATEST, VALUES, SessionCursor
from analytics.queries.sessions import SessionSummary, sums_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# A cursor of a client's own making may hold any value.
_MAX_MICROSECONDS = 10**16
_FIRST_DAYS, _WIDER = 2, 5
# A range that ends within this time of now has no later requests worth a query of their own.
_NOW = timedelta(minutes=5)


@dataclass(frozen=True)
class WholeSessionFilter:
    """A filter of whole sessions: bounds of their figures by name, such as `min_cost_usd` and `max_duration_seconds`.
    Each score from 1 to 5 keeps the sessions that got it."""

    sessions: SessionFilter = field(default_factory=SessionFilter)
    bounds: Mapping[str, Decimal | int] = field(default_factory=dict)
    feedback: tuple[int, ...] = ()

    @property
    def is_plain(self) -> bool:
        """True if each row of `session_days` decides by itself, without the sums of its whole session."""
        return not self.feedback and not self.bounds


@dataclass(frozen=True)
class _Key:
    session_hash: int
    value: int


# The figures that have bounds, as SQL, with the type of the bound.
_BOUNDED = {
    "cost_usd": ("sum(s.cost_usd)", "Decimal(38, 10)"),
    "duration_seconds": (f"({VALUES['duration_seconds']}) / 1000000", "UInt32"),
    "request_count": ("sum(s.requests)", "UInt32"),
    "error_count": ("sum(s.errors)", "UInt32"),
}
_PAGE = """
SELECT s.session_hash AS session_hash, {value} AS value
FROM session_days AS s{joined} WHERE {where} AND s.day >= {{since:Date}}
GROUP BY s.session_hash HAVING {having}
ORDER BY value{direction}, session_hash{tie} LIMIT {{limit:UInt64}}
"""
_MEAN_SCORES = """
LEFT JOIN (
    SELECT cityHash64(session_id) AS session_hash, avg(score) AS mean FROM feedback FINAL
    WHERE project_id = {project:UUID} AND score > 0 GROUP BY session_hash
) AS f ON f.session_hash = s.session_hash"""
_COUNT = """
SELECT count() AS count FROM (
    SELECT s.session_hash AS session_hash FROM session_days AS s WHERE {where} AND s.day >= {{since:Date}}
    GROUP BY s.session_hash HAVING {having}
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


def count_whole_sessions(project_id: UUID, filters: WholeSessionFilter) -> int:
    where, having, params = _conditions(project_id, filters)
    sql = _COUNT.format(where=where, having=having)
    since = _EPOCH.date() if filters.bounds else _oldest_day(filters)
    return visible.query(sql, {**params, "since": since}, row=int, name="sessions.count_whole")[0]


def list_sessions_after(
    project_id: UUID, filters: WholeSessionFilter, *, sort: str = LATEST, after: SessionCursor | None, limit: int
) -> tuple[list[SessionSummary], Mapping[int, int]]:
    """At most `limit` sessions after the cursor, or before one that leads back, with the value by which the list is
    sorted for each session's hash."""
    keys = _latest(project_id, filters, after, limit) if sort == LATEST else []
    if sort != LATEST:
        sql, params = _page(project_id, filters, sort, after, is_of_whole=True)
        keys = _asked(sql, {**params, "since": _EPOCH.date(), "limit": limit})
    if after is not None and after.is_back:
        keys.reverse()
    return sums_of(project_id, [key.session_hash for key in keys]), {key.session_hash: key.value for key in keys}


def _latest(project_id: UUID, filters: WholeSessionFilter, after: SessionCursor | None, limit: int) -> list[_Key]:
    is_of_whole = bool(filters.bounds)
    sql, params = _page(project_id, filters, LATEST, after, is_of_whole=is_of_whole)
    ended_at = _EPOCH + timedelta(microseconds=min(after.value, _MAX_MICROSECONDS)) if after else datetime.now(UTC)
    if after is not None and after.is_back:
        since = _EPOCH.date() if is_of_whole else ended_at.date()
        return _asked(sql, {**params, "since": since, "limit": limit})
    newest = ended_at.date()
    oldest = _EPOCH.date() if is_of_whole else _oldest_day(filters)
    days = (newest - oldest).days + 1 if is_of_whole else _FIRST_DAYS
    while True:
        since = max(newest - timedelta(days=min(days, (newest - oldest).days + 1)), oldest)
        keys = _asked(sql, {**params, "since": since, "limit": limit})
        if len(keys) >= limit or since <= oldest:
            return keys
        days *= _WIDER


def _asked(sql: str, params: Mapping[str, Any]) -> list[_Key]:
    return visible.query(sql, params, row=_Key, name="sessions.after")


def _oldest_day(filters: WholeSessionFilter) -> date:
    start = filters.sessions.start
    return _EPOCH.date() if start is None else start.date()


def _page(
    project_id: UUID, filters: WholeSessionFilter, sort: str, after: SessionCursor | None, *, is_of_whole: bool
) -> tuple[str, dict[str, Any]]:
    where, having, params = _conditions(project_id, filters, is_of_whole=is_of_whole)
    is_back = after is not None and after.is_back
    falls = sort.startswith("-") != is_back
    by_score = sort.endswith("feedback_score")
    if by_score and not sort.startswith("-"):
        having += " AND value > 0"
    if after is not None:
        having += (
            f" AND (value {'<' if falls else '>'} {{cursor:Int64}} OR (value = {{cursor:Int64}}"
            f" AND session_hash {'<' if is_back else '>'} {{cursor_hash:UInt64}}))"
        )
        params |= {"cursor": after.value, "cursor_hash": after.session_hash}
    sql = _PAGE.format(
        value=VALUES[sort.removeprefix("-")],
        joined=_MEAN_SCORES if by_score else "",
        where=where,
        having=having,
        direction=" DESC" if falls else "",
        tie=" DESC" if is_back else "",
    )
    return sql, params


def _conditions(
    project_id: UUID, filters: WholeSessionFilter, *, is_of_whole: bool | None = None
) -> tuple[str, str, dict[str, Any]]:
    """With `is_of_whole` the rows of a session's days before the range are read too."""
    sessions, bounds = filters.sessions, filters.bounds
    of_rows = conditions_of(project_id, sessions)
    where, having, params = [of_rows.of_session], ["1"], {**of_rows.params, **bounds}
    if sessions.end and sessions.end < datetime.now(UTC) - _NOW:
        where.append(_MATCHING.format(matching=of_rows.matching))
    elif sessions.start:
        having.append("max(s.ended_at) >= {start:DateTime64(6, 'UTC')}")
        if bounds or is_of_whole:
            where.append(_SINCE)
    if filters.feedback:
        where.append(_WITH_FEEDBACK)
        params["feedback"] = list(filters.feedback)
    for name in bounds:
        side, _, figure = name.partition("_")
        expression, kind = _BOUNDED[figure]
        having.append(f"{expression} {'>=' if side == 'min' else '<='} {{{name}:{kind}}}")
    if settings.SESSION_LISTING_DELAY_MINUTES:
        having.append("max(s.ended_at) <= {quiet_since:DateTime64(6, 'UTC')}")
        params["quiet_since"] = datetime.now(UTC) - timedelta(minutes=settings.SESSION_LISTING_DELAY_MINUTES)
    return " AND ".join(where), " AND ".join(having), params
