"""Counts the different sessions and users with a request in a range of time.

A session has a row for each of its days, with its first and its last request of that day. On the first day of a range
those rows count whose last request came after the range's start, on the last day those whose first request came before
its end, and on the days between all of them. The rows of users are counted in the same way. Only a range without a
whole day is counted from the requests.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from string import Template
from typing import Any
from uuid import UUID

from analytics.clickhouse import client
from analytics.queries.operations import condition, stored_operations
from analytics.queries.rollup_ranges import PLANNED, TICK, Key, Span, clamp, split, union


@dataclass(frozen=True)
class Distinct:
    sessions: int
    users: int


@dataclass(frozen=True)
class _Number:
    what: str
    number: int


_DAY = timedelta(days=1)
# Sessions and users are counted by their hashes, which is half the work of counting their names.
_SESSIONS = (
    "SELECT t.session_hash AS hash FROM session_days AS t PREWHERE t.project_id = {project:UUID} AND $of_operation"
)
# Rows of session_days are ordered by day, so the times of first and last requests are read for the outermost days only.
_SESSIONS_OF_DAYS = f"""
{_SESSIONS} AND t.day >= {{first:Date}} AND t.day < {{until:Date}}
UNION ALL
{_SESSIONS} AND (t.day = {{first_day:Date}} AND t.day < {{first:Date}} AND t.ended_at >= {{start:DateTime64(6, 'UTC')}}
    OR t.day = {{last_day:Date}} AND t.started_at < {{stop:DateTime64(6, 'UTC')}})
"""
USER_DAYS_IN_RANGE = """t.day >= {first_day:Date} AND t.day <= {last_day:Date}
    AND (t.day >= {first:Date} OR t.last_at >= {start:DateTime64(6, 'UTC')})
    AND (t.day < {until:Date} OR t.first_at < {stop:DateTime64(6, 'UTC')})"""
"""The condition for rows `t` of users_daily with a request in the range, which the first and the last one of a user's
day tell. Rows of users_daily are ordered by name."""

# Requests without a user are left out by the hash of the empty name, since reading the names would cost more than all
# the rest.
_USERS_OF_DAYS = f"""
SELECT t.user_hash AS hash FROM users_daily AS t
PREWHERE t.project_id = {{project:UUID}} AND {USER_DAYS_IN_RANGE}
    AND t.user_hash != cityHash64('') AND $of_operation
"""
# Different hashes are counted in 256 small sets that fit the processor's cache, which is less than half the work of one
# large set. Sets of twelve million are too large with 64, by a quarter of the work.
_DIFFERENT = """(
    SELECT sum(arrayUniq(p.hashes)) AS number
    FROM (SELECT groupArray(h.hash) AS hashes FROM ({rows}) AS h GROUP BY toUInt8(bitShiftRight(h.hash, 56))) AS p
)"""
_COUNTS = """
SELECT 'sessions' AS what, s.number AS number FROM {sessions} AS s
UNION ALL
SELECT 'users' AS what, u.number AS number FROM {users} AS u
"""


def different_hashes(rows: str) -> str:
    """Returns a subquery with the `number` of different hashes among `rows`, a SELECT of `hash`, a UInt64."""
    return _DIFFERENT.format(rows=rows)


def count_distinct(project_id: UUID, start: datetime, end: datetime, *, operation: str = "") -> Distinct:
    """Counts sessions and users from `start` to `end`, both included."""
    start, stop = clamp(start), clamp(end + TICK)
    [whole], _ = split(start, stop, [_DAY])
    sql, params = _over_days(start, stop, whole[0], operation) if whole else _from_requests(start, end, operation)
    values = {**params, "project": project_id}
    rows = client.query(sql, values, row=_Number, name="overview.distinct", database_settings=PLANNED)
    return Distinct(**{row.what: row.number for row in rows})


def _over_days(start: datetime, stop: datetime, whole: Span, operation: str) -> tuple[str, dict[str, Any]]:
    """Returns the query over rollups and its parameters; `whole` are the whole days from `start` up to `stop`."""
    first, until = whole
    params = {
        "operation": stored_operations(operation),
        "first": first.date(),
        "until": until.date(),
        "first_day": start.date(),
        "last_day": until.date(),
        "start": start,
        "stop": stop,
    }
    sql = _COUNTS.format(sessions=different_hashes(_SESSIONS_OF_DAYS), users=different_hashes(_USERS_OF_DAYS))
    return Template(sql).substitute(of_operation=condition(operation)), params


def _from_requests(start: datetime, end: datetime, operation: str) -> tuple[str, dict[str, Any]]:
    sources: dict[str, str] = {}
    params: dict[str, Any] = {}
    for name, column in (("sessions", "session_id"), ("users", "user_id")):
        keys = {"hash": Key("0", f"cityHash64(t.{column})")}
        source, params = union([], start, end, keys=keys, where_request=f"t.{column} != ''", operation=operation)
        sources[name] = different_hashes(f"SELECT f.hash AS hash FROM {source} AS f")
    return _COUNTS.format(**sources), params
