"""Which sessions match a filter, how many are they, and which of them are on one page?

Sessions are in the order of their last activity. Rows of `session_days` are in the order of days, and a session's end
is in the newest of its rows; so as many of the newest days as hold enough sessions hold the page.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings

from analytics.clickhouse import client

# A window that was too small is tried again this many times as wide: all that is read is a third more at most.
_WIDER = 4
# The last day of ClickHouse's Date. Requests have days before 2050.
_LAST_DAY = date(2149, 6, 6)


@dataclass(frozen=True)
class SessionFilter:
    """`start` and `end` keep sessions with some request between them, both included.

    `name_pattern` is a LIKE pattern of the id; `user_id` keeps sessions with some request of that user.
    """

    user_id: str = ""
    name_pattern: str = ""
    start: datetime | None = None
    end: datetime | None = None


@dataclass(frozen=True)
class SessionPage:
    """`count` sessions match in all; `hashes` are those of the page, the latest active first."""

    count: int
    hashes: Sequence[int]


@dataclass(frozen=True)
class _Extent:
    count: int
    first: date
    last: date


@dataclass(frozen=True)
class _Key:
    session_hash: int
    ended_at: datetime


@dataclass(frozen=True)
class _CountedKey:
    session_hash: int
    ended_at: datetime
    count: int


@dataclass(frozen=True)
class _Count:
    count: int


@dataclass(frozen=True)
class _Conditions:
    """`rows` hold for a row of session_days, `sessions` for all rows of a session together."""

    params: dict[str, Any]
    rows: list[str] = field(default_factory=list)
    sessions: list[str] = field(default_factory=list)

    @property
    def where(self) -> str:
        return " AND ".join(["s.project_id = {project:UUID}", *self.rows])

    @property
    def having(self) -> str:
        return f"HAVING {' AND '.join(self.sessions)}" if self.sessions else ""


_ORDER = "ORDER BY ended_at DESC, session_hash LIMIT {limit:UInt64} OFFSET {offset:UInt64}"
# Different hashes are told apart in 64 small sets, each in the processor's cache: half the work of one large set.
_EXTENT = """
SELECT sum(arrayUniq(p.hashes)) AS count, min(p.first) AS first, max(p.last) AS last
FROM (
    SELECT groupArray(s.session_hash) AS hashes, min(s.day) AS first, max(s.day) AS last
    FROM session_days AS s WHERE {where} GROUP BY toUInt8(bitShiftRight(s.session_hash, 58))
) AS p
"""
_WINDOW = """
SELECT s.session_hash AS session_hash, max(s.ended_at) AS ended_at
FROM session_days AS s WHERE {where} AND s.day >= {{since:Date}} GROUP BY session_hash {order}
"""
# One pass for the page and the number of all.
_GROUPED = """
SELECT session_hash, ended_at, count() OVER () AS count
FROM (
    SELECT s.session_hash AS session_hash, max(s.ended_at) AS ended_at
    FROM session_days AS s WHERE {where} GROUP BY session_hash {having}
)
{order}
"""
_GROUPED_COUNT = """
SELECT count() AS count FROM (
    SELECT s.session_hash AS session_hash FROM session_days AS s WHERE {where} GROUP BY session_hash {having}
)
"""
_WENT_ON = """
SELECT s.session_hash AS session_hash, s.ended_at AS ended_at FROM session_days AS s
WHERE s.project_id = {project:UUID} AND s.day >= {end_day:Date} AND s.ended_at > {end:DateTime64(6, 'UTC')} LIMIT 1
"""
_OF_USER = (
    "s.session_hash IN (SELECT u.session_hash FROM session_days AS u"
    " WHERE u.project_id = {project:UUID} AND u.user_id = {user:String})"
)
_BEGUN = "min(s.started_at) <= {end:DateTime64(6, 'UTC')}"
_IN_RANGE = (
    "s.session_hash IN (SELECT m.session_hash FROM session_days AS m"
    " WHERE m.project_id = {project:UUID} AND m.day >= {start_day:Date} AND m.day <= {end_day:Date}"
    " AND m.ended_at >= {start:DateTime64(6, 'UTC')} AND m.started_at <= {end:DateTime64(6, 'UTC')}"
)
# A row is of one day, so only a range within one day can lie between a row's first request and its last. Whether there
# are requests in it then, the requests themselves tell.
_IN_RANGE_OF_A_DAY = (
    " AND (m.started_at >= {start:DateTime64(6, 'UTC')} OR m.ended_at <= {end:DateTime64(6, 'UTC')}"
    " OR m.session_hash IN (SELECT cityHash64(r.session_id) FROM requests AS r"
    " WHERE r.project_id = {project:UUID} AND r.session_id != ''"
    " AND r.ts >= {start:DateTime64(6, 'UTC')} AND r.ts <= {end:DateTime64(6, 'UTC')}))"
)


def find_page(project_id: UUID, wanted: SessionFilter, *, limit: int, offset: int) -> SessionPage:
    if wanted.end and not _any_went_on(project_id, wanted.end):
        wanted = replace(wanted, end=None)
    conditions = _conditions(project_id, wanted)
    if conditions.sessions or wanted.user_id or wanted.end:
        return _grouped(conditions, limit, offset)
    return _windowed(conditions, limit, offset)


def _any_went_on(project_id: UUID, end: datetime) -> bool:
    """False for most ranges that people ask for: they end now."""
    params = {"project": project_id, "end": end, "end_day": _day(end)}
    return bool(client.query(_WENT_ON, params, row=_Key, name="sessions.went_on"))


def _conditions(project_id: UUID, wanted: SessionFilter) -> _Conditions:
    found = _Conditions({"project": project_id})
    if wanted.name_pattern:
        found.rows.append("s.session_id LIKE {pattern:String}")
        found.params["pattern"] = wanted.name_pattern
    if wanted.user_id:
        found.rows.append(_OF_USER)
        found.params["user"] = wanted.user_id
    _add_range(found, wanted)
    if settings.SESSION_LISTING_DELAY_MINUTES:
        found.sessions.append("ended_at <= {quiet_since:DateTime64(6, 'UTC')}")
        found.params["quiet_since"] = datetime.now(UTC) - timedelta(minutes=settings.SESSION_LISTING_DELAY_MINUTES)
    return found


def _add_range(found: _Conditions, wanted: SessionFilter) -> None:
    if wanted.start:
        found.rows.extend(["s.day >= {start_day:Date}", "s.ended_at >= {start:DateTime64(6, 'UTC')}"])
        found.params.update(start=wanted.start, start_day=_day(wanted.start))
    if wanted.end:
        found.params.update(end=wanted.end, end_day=_day(wanted.end))
    if wanted.start and wanted.end:
        _add_both_ends(found, wanted.start, wanted.end)
    elif wanted.end:
        found.sessions.append(_BEGUN)


def _add_both_ends(found: _Conditions, start: datetime, end: datetime) -> None:
    """The sessions of a short range are a set to look in; those of a long one are told while all are grouped."""
    if start.date() == end.date():
        found.rows.append(f"{_IN_RANGE}{_IN_RANGE_OF_A_DAY})")
    elif (end - start) * 2 < datetime.now(UTC) - start:
        found.rows.append(f"{_IN_RANGE})")
    else:
        found.sessions.append(_BEGUN)


def _day(moment: datetime) -> date:
    return min(moment.date(), _LAST_DAY)


def _windowed(conditions: _Conditions, limit: int, offset: int) -> SessionPage:
    """For conditions that hold for the newest row of a session: read back by days until the page is full."""
    extent = client.query(
        _EXTENT.format(where=conditions.where), conditions.params, row=_Extent, name="sessions.count"
    )[0]
    needed = min(offset + limit, extent.count)
    if offset >= extent.count:
        return SessionPage(extent.count, [])
    sql = _WINDOW.format(where=conditions.where, order=_ORDER)
    days = (extent.last - extent.first).days + 1
    window = math.ceil(needed * days / extent.count) + 1
    while True:
        since = max(extent.last - timedelta(days=min(window, days) - 1), extent.first)
        params = {**conditions.params, "since": since, "limit": limit, "offset": offset}
        keys = client.query(sql, params, row=_Key, name="sessions.page")
        if window >= days or (keys and offset + len(keys) >= needed):
            return SessionPage(extent.count, [key.session_hash for key in keys])
        window *= _WIDER


def _grouped(conditions: _Conditions, limit: int, offset: int) -> SessionPage:
    sql = _GROUPED.format(where=conditions.where, having=conditions.having, order=_ORDER)
    params = {**conditions.params, "limit": limit, "offset": offset}
    keys = client.query(sql, params, row=_CountedKey, name="sessions.grouped")
    if keys or not offset:
        return SessionPage(keys[0].count if keys else 0, [key.session_hash for key in keys])
    sql = _GROUPED_COUNT.format(where=conditions.where, having=conditions.having)
    count = client.query(sql, conditions.params, row=_Count, name="sessions.grouped_count")[0].count
    return SessionPage(count, [])
