"""Counts the matching sessions, and finds those of one page.

Sessions are ordered by their last activity, rows of `session_days` by day, and a session's end is in its newest row. So
the newest days that hold enough sessions hold the page.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

from django.conf import settings

from analytics.queries import visible
from analytics.queries.session_filters import Conditions, SessionFilter, conditions_of

# A range of days that was too small is widened by this factor, so that at most a third more is read.
_WIDER = 4
_FIRST_DAY = date(1970, 1, 1)
# A user's sessions are spread unevenly, and an index leaves few granules of each day: of ten million requests, twice
# the days cost 1 ms of CPU at most, and reading again, which one page in twenty-five needed, 15 ms.
_MARGIN_OF_USER = 2
# A page that ends within this many sessions is looked for in yesterday and today first.
_SHALLOW = 1000
_NEWEST_DAYS = timedelta(days=1)
# The days of a deeper page are estimated from the rows of the week before, with a margin, up to a maximum of days.
_WEEK = timedelta(days=7)
_SOMEWHAT_MORE = 1.15
_MAX_DAYS = 400
# With very many hashes, reading all granules is faster than looking up each hash in the skip index.
_WITHOUT_INDEXES = {"use_skip_indexes": 0}
_MAX_LOOKED_UP = 2000
_MAX_LISTED = 10_000
_ROWS_OF_SET = 16
# Where most of the rows that match the key are needed, moving conditions to PREWHERE costs more than it saves.
_ALL_ROWS = {**_WITHOUT_INDEXES, "optimize_move_to_prewhere": 0}
# The setting also keeps the server from sorting a hundred thousand hashes to compare them with the key.
_BY_SET = {**_ALL_ROWS, "use_index_for_in_with_subqueries": 0}


@dataclass(frozen=True)
class SessionPage:
    """`count` is the number of all matches, `hashes` are the sessions of the page, the latest active first."""

    count: int
    hashes: Sequence[int]


@dataclass(frozen=True)
class _Extent:
    """The number of matching sessions, and the first and last day of their rows.

    `continued` are the hashes of those that have rows after the range, empty if they are too many; `continued_count` is
    their number.
    """

    count: int
    first: date
    last: date
    continued: list[int]
    continued_count: int

    @property
    def days(self) -> int:
        return (self.last - self.first).days + 1


@dataclass(frozen=True)
class _Matches:
    """Matching sessions with some of their `rows`, each a hash and the microsecond of the row's last request; `are_all`
    tells whether the rows are complete."""

    count: int
    first: date
    last: date
    are_all: bool
    rows: list[tuple[int, int]]

    @property
    def extent(self) -> _Extent:
        return _Extent(self.count, self.first, self.last, [], 0)

    def page(self, limit: int, offset: int) -> SessionPage:
        ends: dict[int, int] = {}
        for session_hash, end in self.rows:
            ends[session_hash] = max(end, ends.get(session_hash, end))
        ordered = sorted(ends, key=lambda session_hash: (-ends[session_hash], session_hash))
        return SessionPage(self.count, ordered[offset : offset + limit])


@dataclass(frozen=True)
class _CountedKey:
    session_hash: int
    ended_at: datetime
    count: int


# Distinct hashes are counted in 256 small sets that fit the processor's cache, which is less than half the work of one
# large set.
_EXTENT = """
SELECT sum(arrayUniq(p.hashes)) AS count, min(p.first) AS first, max(p.last) AS last,
    CAST([], 'Array(UInt64)') AS continued, 0 AS continued_count
FROM (
    SELECT groupArray(s.session_hash) AS hashes, min(s.day) AS first, max(s.day) AS last
    FROM {table} AS s WHERE {where} GROUP BY toUInt8(bitShiftRight(s.session_hash, 56))
) AS p
"""
_COUNT = """
SELECT sum(arrayUniq(p.hashes)) AS count
FROM (
    SELECT groupArray(s.session_hash) AS hashes
    FROM session_days AS s WHERE {where} GROUP BY toUInt8(bitShiftRight(s.session_hash, 56))
) AS p
"""
# A pattern seldom matches many sessions, so their rows come with the count, up to a number of each of 64 sets.
_WITH_ROWS = """
SELECT sum(arrayUniq(p.hashes)) AS count, min(p.first) AS first, max(p.last) AS last,
    max(length(p.hashes)) <= {rows_of_set} AS are_all, arrayFlatten(groupArray(p.rows)) AS rows
FROM (
    SELECT groupArray(s.session_hash) AS hashes, min(s.day) AS first, max(s.day) AS last,
        groupArray({rows_of_set})((s.session_hash, toUnixTimestamp64Micro(s.ended_at))) AS rows
    FROM session_days AS s WHERE {where} GROUP BY toUInt8(bitShiftRight(s.session_hash, 58))
) AS p
"""
_OF_USER = "s.project_id = {project:UUID} AND s.user_id = {user:String}"
# Sessions are ordered by their last activity, the latest first, then by hash. Sorting one number for both, of a hundred
# thousand sessions, takes half the time of ORDER BY over two columns with so large a LIMIT.
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
# The query counts the sessions of a range, and those that continued after it. Intersecting two arrays in the cache
# takes half the time of a set of all hashes.
_RANGE = """
SELECT
    sum(arrayUniq(p.matching)) AS count, min(p.first) AS first, max(p.last) AS last,
    sum(length(arrayIntersect(p.matching, p.later))) AS continued_count,
    if(continued_count > {max_listed}, [], arrayFlatten(groupArray(arrayIntersect(p.matching, p.later)))) AS continued
FROM (
    SELECT
        groupArrayIf(r.hash, r.matching) AS matching, groupArrayIf(r.hash, r.later) AS later,
        minIf(r.day, r.matching) AS first, maxIf(r.day, r.matching) AS last
    FROM (
        SELECT s.session_hash AS hash, s.day AS day, ({in_range}) AS matching, ({later}) AS later
        FROM session_days AS s WHERE {of_session} AND {since} AND s.day <= {{end_day:Date}}
        UNION ALL
        SELECT s.session_hash, s.day, 0, 1 FROM session_days AS s WHERE {of_session} AND s.day > {{end_day:Date}}
    ) AS r
    GROUP BY toUInt8(bitShiftRight(r.hash, 56)) HAVING notEmpty(matching)
) AS p
"""
# The following query has no lower bound on days.
_AND_LATER = """
UNION ALL
SELECT s.session_hash, s.ended_at FROM session_days AS s
WHERE s.project_id = {{project:UUID}} AND {later} AND s.session_hash IN {continued}
"""
# Sessions with rows after the last day of the range come before all others.
_AFTER_RANGE = """
SELECT s.session_hash AS session_hash, s.ended_at AS ended_at FROM session_days AS s
PREWHERE s.project_id = {project:UUID} AND s.day > {end_day:Date} AND s.session_hash IN {continued:Array(UInt64)}
"""
# The query finds the same rows without a count of the sessions first. Few rows match, and only theirs are read in
# further columns.
_CONTINUED = """
SELECT l.session_hash AS session_hash, l.ended_at AS ended_at FROM session_days AS l
PREWHERE l.session_hash IN ({matching}) AND l.day > {{end_day:Date}} AND l.project_id = {{project:UUID}}
"""
_OF_WEEK = """
SELECT count() AS count FROM session_days AS s
WHERE s.project_id = {project:UUID} AND s.day >= {first:Date} AND s.day < {until:Date}
"""
_HASHES = "SELECT s.session_hash FROM session_days AS s WHERE {where}"
# The query finds the page and the number of all sessions in one pass.
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
_ANY_CONTINUED = """
SELECT s.session_hash FROM session_days AS s
WHERE s.project_id = {project:UUID} AND s.day >= {end_day:Date} AND s.ended_at > {end:DateTime64(6, 'UTC')} LIMIT 1
"""


def find_page(project_id: UUID, filters: SessionFilter, *, limit: int, offset: int) -> SessionPage:
    if filters.within_a_day and not _any_continued(project_id, filters):
        filters = replace(filters, end=None)
    conditions = conditions_of(project_id, filters)
    if settings.SESSION_LISTING_DELAY_MINUTES or filters.within_a_day:
        return _grouped(conditions, limit, offset)
    if conditions.later:
        extent = _range(conditions)
    elif filters.user_id and filters == SessionFilter(user_id=filters.user_id):
        return _read_back(
            conditions, _extent("user_sessions", _OF_USER, conditions), limit, offset, margin=_MARGIN_OF_USER
        )
    elif filters.name_pattern:
        matches = _matches(conditions)
        if matches.are_all:
            return matches.page(limit, offset)
        extent = matches.extent
    else:
        extent = _extent("session_days", conditions.matching, conditions)
    return _read_back(conditions, extent, limit, offset)


def is_of_newest(filters: SessionFilter) -> bool:
    """Whether the latest days probably hold the page, and their number can be estimated."""
    narrowed = filters.user_id or filters.operation or filters.name_pattern or filters.end
    return not (narrowed or settings.SESSION_LISTING_DELAY_MINUTES)


def find_newest(project_id: UUID, filters: SessionFilter, *, limit: int, offset: int) -> Sequence[int]:
    """The whole page for a filter that `is_of_newest`, or nothing. It does not need the count."""
    since = _newest_days(project_id, offset + limit)
    if since is None:
        return []
    conditions = conditions_of(project_id, filters)
    params = {**conditions.params, "since": since, "limit": limit, "offset": offset}
    sql = _PAGE.format(rows=_WINDOW.format(matching=conditions.matching))
    [page] = visible.query(sql, params, row=list[int], name="sessions.newest")
    return page if len(page) == limit else []


def _newest_days(project_id: UUID, sessions: int) -> date | None:
    today = datetime.now(UTC).date()
    if sessions <= _SHALLOW:
        return today - _NEWEST_DAYS
    params = {"project": project_id, "first": today - _WEEK, "until": today}
    week = visible.query(_OF_WEEK, params, row=int, name="sessions.week")[0]
    # Both sides are multiplied out, since an offset may be a number of any size.
    if sessions * _WEEK.days > week * _MAX_DAYS:
        return None
    return today - timedelta(days=math.ceil(sessions * _WEEK.days / week * _SOMEWHAT_MORE))


def is_of_past(filters: SessionFilter) -> bool:
    """Whether the range ended longer ago than it lasted: then some of its sessions continued, and few rows show
    which.
    """
    if not (filters.start and filters.end) or filters.within_a_day or settings.SESSION_LISTING_DELAY_MINUTES:
        return False
    return filters.end - filters.start < datetime.now(UTC) - filters.end


def find_continued(project_id: UUID, filters: SessionFilter, *, limit: int, offset: int) -> Sequence[int]:
    """The whole page for a filter that `is_of_past`, or nothing: sessions that continued after the last day come
    first.
    """
    conditions = conditions_of(project_id, filters)
    sql = _PAGE.format(rows=_CONTINUED.format(matching=_HASHES.format(where=conditions.matching)))
    params = {**conditions.params, "limit": limit, "offset": offset}
    [page] = visible.query(sql, params, row=list[int], name="sessions.gone_on", database_settings=_BY_SET)
    return page if len(page) == limit else []


def count_sessions(project_id: UUID, filters: SessionFilter) -> int:
    conditions = conditions_of(project_id, filters)
    sql = _COUNT.format(where=conditions.matching)
    [count] = visible.query(sql, conditions.params, row=int, name="sessions.count", database_settings=_ALL_ROWS)
    return count


def _any_continued(project_id: UUID, filters: SessionFilter) -> bool:
    """Whether any session continued after the range. Most ranges end now, so mostly none did."""
    params = conditions_of(project_id, filters).params
    return bool(visible.query(_ANY_CONTINUED, params, row=int, name="sessions.went_on"))


def _extent(table: str, where: str, conditions: Conditions) -> _Extent:
    sql = _EXTENT.format(table=table, where=where)
    return visible.query(
        sql, conditions.params, row=_Extent, name="sessions.count", database_settings=_WITHOUT_INDEXES
    )[0]


def _matches(conditions: Conditions) -> _Matches:
    sql = _WITH_ROWS.format(where=conditions.matching, rows_of_set=_ROWS_OF_SET)
    return visible.query(
        sql, conditions.params, row=_Matches, name="sessions.matches", database_settings=_WITHOUT_INDEXES
    )[0]


def _range(conditions: Conditions) -> _Extent:
    sql = _RANGE.format(
        in_range=conditions.in_range,
        later=conditions.later,
        of_session=conditions.of_session,
        since=conditions.since,
        max_listed=_MAX_LISTED,
    )
    return visible.query(sql, conditions.params, row=_Extent, name="sessions.range", database_settings=_ALL_ROWS)[0]


def _read_back(conditions: Conditions, extent: _Extent, limit: int, offset: int, *, margin: int = 1) -> SessionPage:
    needed = min(offset + limit, extent.count)
    if offset >= extent.count:
        return SessionPage(extent.count, [])
    rows = _WINDOW.format(matching=conditions.matching)
    params = {**conditions.params, "limit": limit, "offset": offset}
    if extent.continued_count:
        listed = len(extent.continued) == extent.continued_count
        if listed and offset + limit <= extent.continued_count:
            later = _after_range(conditions, extent, limit, offset)
            if len(later) == limit:
                return SessionPage(extent.count, later)
        continued = "{continued:Array(UInt64)}" if listed else f"({_HASHES.format(where=conditions.matching)})"
        rows += _AND_LATER.format(later=conditions.later, continued=continued)
        params["continued"] = extent.continued
    # The set of a user's sessions is seldom large, nor are the days to read.
    found = _WITHOUT_INDEXES if extent.continued_count > _MAX_LOOKED_UP else {}
    window = math.ceil(needed * extent.days / extent.count * margin) + 1
    while True:
        since = max(extent.last - timedelta(days=min(window, extent.days) - 1), extent.first)
        here = {**params, "since": since}
        [page] = visible.query(
            _PAGE.format(rows=rows), here, row=list[int], name="sessions.page", database_settings=found
        )
        if window >= extent.days or (page and offset + len(page) >= needed):
            return SessionPage(extent.count, page)
        window *= _WIDER


def _after_range(conditions: Conditions, extent: _Extent, limit: int, offset: int) -> Sequence[int]:
    params = {**conditions.params, "continued": extent.continued, "limit": limit, "offset": offset}
    sql = _PAGE.format(rows=_AFTER_RANGE)
    return visible.query(sql, params, row=list[int], name="sessions.after_range")[0]


def _grouped(conditions: Conditions, limit: int, offset: int) -> SessionPage:
    """A page from all rows of the matching sessions: for conditions that no single row decides, or that cost more
    otherwise."""
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
    keys = visible.query(sql, params, row=_CountedKey, name="sessions.grouped", database_settings=_WITHOUT_INDEXES)
    if keys or not offset:
        return SessionPage(keys[0].count if keys else 0, [key.session_hash for key in keys])
    sql = _GROUPED_COUNT.format(matching=matching, having=having)
    count = visible.query(sql, params, row=int, name="sessions.grouped_count")[0]
    return SessionPage(count, [])
