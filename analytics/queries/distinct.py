"""Counts the different sessions and users with a request in a range of time.

A session has a row for each of its days, with its first and its last request of that day. On the first day of a range
those rows count whose last request came after the range's start, on the last day those whose first request came before
its end, and on the days between all of them. The rows of users are counted in the same way. Only a range without a
whole day is counted from the requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from string import Template
from typing import Any
from uuid import UUID

from analytics.clickhouse import client
from analytics.queries.operations import condition, stored_operations
from analytics.queries.parallel import all_of
from analytics.queries.rollup_ranges import PLANNED, TICK, Key, Span, clamp, split, union


@dataclass(frozen=True)
class Distinct:
    sessions: int
    users: int


@dataclass(frozen=True)
class _Number:
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
_DIFFERENT = """
SELECT sum(arrayUniq(p.hashes)) AS number
FROM (SELECT groupArray(h.hash) AS hashes FROM ({rows}) AS h GROUP BY toUInt8(bitShiftRight(h.hash, 56))) AS p
"""


def count_distinct(project_id: UUID, start: datetime, end: datetime, *, operation: str = "") -> Distinct:
    """Counts sessions and users from `start` to `end`, both included.

    They are counted side by side: of a hundred million requests either takes longer to read than a query to plan."""
    start, stop = clamp(start), clamp(end + TICK)
    [whole], _ = split(start, stop, [_DAY])
    if whole:
        params = _days(start, stop, whole[0], operation)
        of_operation = condition(operation)
        asked = [
            (Template(rows).substitute(of_operation=of_operation), params)
            for rows in (_SESSIONS_OF_DAYS, _USERS_OF_DAYS)
        ]
    else:
        asked = [_of_requests(column, start, end, operation) for column in ("session_id", "user_id")]
    sessions, users = all_of([partial(_number, project_id, rows, params) for rows, params in asked])
    return Distinct(sessions, users)


def _number(project_id: UUID, rows: str, params: Mapping[str, Any]) -> int:
    values = {**params, "project": project_id}
    sql = _DIFFERENT.format(rows=rows)
    return client.query(sql, values, row=_Number, name="overview.distinct", database_settings=PLANNED)[0].number


def _days(start: datetime, stop: datetime, whole: Span, operation: str) -> Mapping[str, Any]:
    """Returns the parameters of the queries over rollups; `whole` are the whole days from `start` up to `stop`."""
    first, until = whole
    return {
        "operation": stored_operations(operation),
        "first": first.date(),
        "until": until.date(),
        "first_day": start.date(),
        "last_day": until.date(),
        "start": start,
        "stop": stop,
    }


def _of_requests(column: str, start: datetime, end: datetime, operation: str) -> tuple[str, Mapping[str, Any]]:
    keys = {"hash": Key("0", f"cityHash64(t.{column})")}
    source, params = union([], start, end, keys=keys, where_request=f"t.{column} != ''", operation=operation)
    return f"SELECT f.hash AS hash FROM {source} AS f", params
