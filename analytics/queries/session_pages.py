"""Which sessions match a filter, how many are they, and which of them are on one page?

Sessions are in the order of their last activity. Rows of `session_days` are in the order of days, and a session's end
is in the newest of its rows; so as many of the newest days as hold enough sessions hold the page.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings

from analytics.clickhouse import client
from analytics.queries.session_filters import Conditions, SessionFilter, conditions_of, day_of

__all__ = ["SessionFilter", "SessionPage", "find_page"]

# A window that was too small is tried again this many times as wide: all that is read is a third more at most.
_WIDER = 4
_FIRST_DAY = date(1970, 1, 1)
# To look up each of a hundred thousand hashes in the index of every granule takes longer than to read them all.
_WITHOUT_INDEXES = {"use_skip_indexes": 0}


@dataclass(frozen=True)
class SessionPage:
    """`count` sessions match in all; `hashes` are those of the page, the latest active first."""

    count: int
    hashes: Sequence[int]


@dataclass(frozen=True)
class _Extent:
    """So many sessions have rows from day `first` to day `last`."""

    count: int
    first: date
    last: date

    @property
    def days(self) -> int:
        return (self.last - self.first).days + 1


@dataclass(frozen=True)
class _Hashes:
    hashes: list[int]


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


# Different hashes are told apart in 64 small sets, each in the processor's cache: half the work of one large set.
_EXTENT = """
SELECT sum(arrayUniq(p.hashes)) AS count, min(p.first) AS first, max(p.last) AS last
FROM (
    SELECT groupArray(s.session_hash) AS hashes, min(s.day) AS first, max(s.day) AS last
    FROM {table} AS s WHERE {where} GROUP BY toUInt8(bitShiftRight(s.session_hash, 58))
) AS p
"""
_OF_USER = "s.project_id = {project:UUID} AND s.user_id = {user:String}"
# The latest active first, then by hash. A hundred thousand numbers are sorted in half the time that ORDER BY takes for
# the two columns and so large a LIMIT.
_PAGE = """
SELECT arrayMap(
    place -> bitNot(toUInt64(place)),
    arraySlice(arrayReverseSort(groupArray(place)), {{offset:UInt64}} + 1, {{limit:UInt64}})
) AS hashes
FROM (
    SELECT bitShiftLeft(toUInt128(toUnixTimestamp64Micro(max(f.ended_at))), 64) + bitNot(f.session_hash) AS place
    FROM ({rows}) AS f GROUP BY f.session_hash
)
"""
_WINDOW = """
SELECT s.session_hash AS session_hash, s.ended_at AS ended_at
FROM session_days AS s WHERE {matching} AND s.day >= {{since:Date}}
"""
# Of the sessions that went on after the range, however far back they match.
_AND_LATER = """
UNION ALL
SELECT s.session_hash, s.ended_at FROM session_days AS s WHERE {later} AND s.session_hash IN ({also_matching})
"""
_HASHES = "SELECT s.session_hash FROM session_days AS s WHERE {where}"
# One pass for the page and the number of all.
_GROUPED = """
SELECT session_hash, ended_at, count() OVER () AS count
FROM (
    SELECT s.session_hash AS session_hash, max(s.ended_at) AS ended_at FROM session_days AS s
    WHERE s.project_id = {{project:UUID}} AND s.day >= {{since:Date}} AND s.session_hash IN ({matching})
    GROUP BY session_hash {having}
)
ORDER BY ended_at DESC, session_hash LIMIT {{limit:UInt64}} OFFSET {{offset:UInt64}}
"""
_GROUPED_COUNT = """
SELECT count() AS count FROM (
    SELECT s.session_hash AS session_hash FROM session_days AS s
    WHERE s.project_id = {{project:UUID}} AND s.day >= {{since:Date}} AND s.session_hash IN ({matching})
    GROUP BY session_hash {having}
)
"""
_QUIET = "HAVING max(s.ended_at) <= {quiet_since:DateTime64(6, 'UTC')}"
_WENT_ON = """
SELECT s.session_hash AS session_hash, s.ended_at AS ended_at FROM session_days AS s
WHERE s.project_id = {project:UUID} AND s.day >= {end_day:Date} AND s.ended_at > {end:DateTime64(6, 'UTC')} LIMIT 1
"""


def find_page(project_id: UUID, wanted: SessionFilter, *, limit: int, offset: int) -> SessionPage:
    if wanted.end and not _any_went_on(project_id, wanted.end):
        wanted = replace(wanted, end=None)
    conditions = conditions_of(project_id, wanted)
    if settings.SESSION_LISTING_DELAY_MINUTES or wanted.within_a_day:
        return _grouped(conditions, limit, offset)
    if wanted == SessionFilter(user_id=wanted.user_id) and wanted.user_id:
        extent = _extent("user_sessions", _OF_USER, conditions.params)
    else:
        extent = _extent("session_days", conditions.matching, conditions.params)
    return _windowed(extent, conditions, limit, offset)


def _any_went_on(project_id: UUID, end: datetime) -> bool:
    """False for most ranges that people ask for: they end now."""
    params = {"project": project_id, "end": end, "end_day": day_of(end)}
    return bool(client.query(_WENT_ON, params, row=_Key, name="sessions.went_on"))


def _extent(table: str, where: str, params: dict[str, Any]) -> _Extent:
    sql = _EXTENT.format(table=table, where=where)
    return client.query(sql, params, row=_Extent, name="sessions.count", database_settings=_WITHOUT_INDEXES)[0]


def _windowed(extent: _Extent, conditions: Conditions, limit: int, offset: int) -> SessionPage:
    """Read back by days until the page is full."""
    needed = min(offset + limit, extent.count)
    if offset >= extent.count:
        return SessionPage(extent.count, [])
    sql = _page_of(extent, conditions)
    # The set of a range is large, so its index is left aside; that of a user seldom is, nor are the days to read.
    found = _WITHOUT_INDEXES if conditions.later else {}
    window = math.ceil(needed * extent.days / extent.count) + 1
    while True:
        since = max(extent.last - timedelta(days=min(window, extent.days) - 1), extent.first)
        params = {**conditions.params, "since": since, "limit": limit, "offset": offset}
        [page] = client.query(sql, params, row=_Hashes, name="sessions.page", database_settings=found)
        if window >= extent.days or (page.hashes and offset + len(page.hashes) >= needed):
            return SessionPage(extent.count, page.hashes)
        window *= _WIDER


def _page_of(extent: _Extent, conditions: Conditions) -> str:
    window = _WINDOW.format(matching=conditions.matching)
    if not conditions.later:
        return _PAGE.format(rows=window)
    also_matching = _HASHES.format(where=conditions.matching)
    if datetime.now(UTC).date() - extent.last < timedelta(days=extent.days):
        # The shorter time is the set to look in.
        also_matching += f" AND s.session_hash IN ({_HASHES.format(where=conditions.later)})"
    later = _AND_LATER.format(later=conditions.later, also_matching=also_matching)
    return _PAGE.format(rows=f"{window}{later}")


def _grouped(conditions: Conditions, limit: int, offset: int) -> SessionPage:
    """All rows of the sessions that match, for conditions that cost more than that or that no single row tells."""
    params = {
        **conditions.params,
        "since": conditions.params.get("start_day", _FIRST_DAY),
        "limit": limit,
        "offset": offset,
    }
    having = ""
    if settings.SESSION_LISTING_DELAY_MINUTES:
        having = _QUIET
        params["quiet_since"] = datetime.now(UTC) - timedelta(minutes=settings.SESSION_LISTING_DELAY_MINUTES)
    matching = _HASHES.format(where=conditions.matching)
    sql = _GROUPED.format(matching=matching, having=having)
    keys = client.query(sql, params, row=_CountedKey, name="sessions.grouped", database_settings=_WITHOUT_INDEXES)
    if keys or not offset:
        return SessionPage(keys[0].count if keys else 0, [key.session_hash for key in keys])
    sql = _GROUPED_COUNT.format(matching=matching, having=having)
    count = client.query(sql, params, row=_Count, name="sessions.grouped_count")[0].count
    return SessionPage(count, [])
