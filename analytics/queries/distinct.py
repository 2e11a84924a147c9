"""Counts the distinct sessions and users of a range.

A session has a row for each of its days, with its first and its last request of that day. On the first day of a range,
rows count whose last request came after the range's start; on the last day, those whose first request came before its
end; on the days between, all. Users are counted likewise. Only a range without a whole day is counted from the
requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from string import Template
from typing import Any

from analytics.clickhouse import client
from analytics.queries.operations import condition, stored_operations
from analytics.queries.parallel import all_of
from analytics.queries.rollup_ranges import PLANNED, TICK, Key, Span, clamp, split
from analytics.queries.summed import Scope


@dataclass(frozen=True)
class Distinct:
    sessions: int
    users: int


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


def count_distinct(scope: Scope) -> Distinct:
    """Counts both in parallel: for a hundred million requests, reading either takes longer than planning a query."""
    start, stop = clamp(scope.start), clamp(scope.end + TICK)
    [whole], _ = split(start, stop, [_DAY])
    if whole:
        params = days_in_range(scope, whole[0])
        of_operation = condition(scope.operation)
        asked = [
            (Template(rows).substitute(of_operation=of_operation), params)
            for rows in (_SESSIONS_OF_DAYS, _USERS_OF_DAYS)
        ]
    else:
        asked = [_of_requests(scope, column) for column in ("session_id", "user_id")]
    sessions, users = all_of([partial(_number, rows, params) for rows, params in asked])
    return Distinct(sessions, users)


def _number(rows: str, params: Mapping[str, Any]) -> int:
    sql = _DIFFERENT.format(rows=rows)
    return client.query(sql, params, row=int, name="overview.distinct", database_settings=PLANNED)[0]


def days_in_range(scope: Scope, whole: Span) -> Mapping[str, Any]:
    """Returns the parameters of the queries over rollups by day; `whole` are the whole days of the range."""
    (first, until), start = whole, clamp(scope.start)
    return {
        "project": scope.project_id,
        "operation": stored_operations(scope.operation),
        "first": first.date(),
        "until": until.date(),
        "first_day": start.date(),
        "last_day": until.date(),
        "start": start,
        "stop": clamp(scope.end + TICK),
    }


def _of_requests(scope: Scope, column: str) -> tuple[str, Mapping[str, Any]]:
    keys = {"hash": Key("0", f"cityHash64(t.{column})")}
    source, params = scope.of(keys=keys, where_request=f"t.{column} != ''")()
    return f"SELECT f.hash AS hash FROM {source} AS f", params
