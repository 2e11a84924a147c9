"""Lists a project's users with their figures in a range of time.

The names of a page are read first, from the few columns that order users; all other figures are read only for these
names.

The rollup by day bounds each user's figures: the upper bound sums the days in which the user had a request in the
range, the lower bound only the whole days. By these bounds few users can be on the page, and exact figures are read
only for them. The users with bounds are all of the range, so the same rows count them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, make_dataclass
from datetime import datetime
from decimal import Decimal
from functools import partial
from string import Template
from typing import Any, get_type_hints

from analytics.clickhouse import client
from analytics.queries.distinct import USER_DAYS_IN_RANGE, days_in_range
from analytics.queries.operations import condition
from analytics.queries.parallel import both
from analytics.queries.rollup_ranges import PLANNED, TICK, USER_DAYS, USER_HOURS, clamp, same, split
from analytics.queries.summed import BY_COST, Scope, Source, Sums, count_keys, summed


@dataclass(frozen=True)
class UserFigures(Sums):
    """A user's figures. Sessions are different ones; times are of the first and the last request in the range."""

    user_id: str
    session_count: int
    models_used: list[str]
    first_seen: datetime
    last_seen: datetime


@dataclass(frozen=True)
class Users:
    count: int
    page: Sequence[UserFigures]
    unnamed: UserFigures | None


@dataclass(frozen=True)
class TopUser:
    user_id: str
    request_count: int
    error_rate: float
    total_cost_usd: Decimal


@dataclass(frozen=True)
class _Name:
    user_id: str
    users: int


@dataclass(frozen=True)
class _Bounds:
    """The lower and upper bounds of a user's cost and requests; `users` is the number of all users, 0 if not
    counted.
    """

    user_id: str
    lower_bound: tuple[Decimal, int]
    upper_bound: tuple[Decimal, int]
    users: int


_KEYS = {"user_id": same("t.user_id")}
_NAMED = "t.user_id != ''"
_OF_TOKENS = (
    "session_count",
    "prompt_tokens",
    "completion_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "total_tokens",
)


def _part_of_figures(name: str, *, has_tokens: bool) -> Any:
    parts = get_type_hints(UserFigures).items()
    chosen = [(one, hint) for one, hint in parts if one == "user_id" or (one in _OF_TOKENS) is has_tokens]
    return make_dataclass(name, chosen, frozen=True)


# The server plans a query column by column, which takes most of its time: two queries of half the columns,
# run at once, are faster.
_RequestFigures = _part_of_figures("_RequestFigures", has_tokens=False)
_TokenFigures = _part_of_figures("_TokenFigures", has_tokens=True)

# Beyond this number, the bounds leave too many users that may be on the page.
_NEAR_THE_TOP = 200
_BOUNDS = f"""
SELECT
    t.user_id AS user_id,
    (sumIf(t.cost_usd, t.day >= {{first:Date}} AND t.day < {{until:Date}}),
        sumIf(t.requests, t.day >= {{first:Date}} AND t.day < {{until:Date}})) AS lower_bound,
    (sum(t.cost_usd), sum(t.requests)) AS upper_bound,
    $users AS users
FROM users_daily AS t
PREWHERE t.project_id = {{project:UUID}} AND {USER_DAYS_IN_RANGE} AND t.user_id != '' AND $of_operation
GROUP BY t.user_id ORDER BY upper_bound DESC LIMIT {{limit:UInt64}}
"""


def _users(scope: Scope, where: str) -> Source:
    return scope.of(USER_DAYS, USER_HOURS, keys=_KEYS, where=where)


def list_users(scope: Scope, *, limit: int, offset: int) -> Users:
    """By falling cost, then falling requests, then name."""
    found = _likely(scope, offset + limit)
    if found is None:
        names, count = _ordered(scope, limit, offset)
        offset = 0
    else:
        names, count = found
    rows = _rows(scope, ["", *names])
    unnamed = rows.pop("", None)
    return Users(count, sorted(rows.values(), key=_by_cost)[offset : offset + limit], unnamed)


def top_users(scope: Scope, *, limit: int) -> list[TopUser]:
    """The first `limit` of `list_users` with few figures, in one query or, if bounds help, in two."""
    found = _likely(scope, limit, is_counted=False)
    if found is None:
        order = f"{BY_COST}, user_id LIMIT {{limit:UInt64}}"
        return summed(TopUser, _users(scope, _NAMED), by=_KEYS, tail=order, values={"limit": limit}, name="users.top")
    return sorted(_figures(scope, found[0], TopUser).values(), key=_by_cost)[:limit]


def _by_cost(row: UserFigures | TopUser) -> tuple[Decimal, int, str]:
    return -row.total_cost_usd, -row.request_count, row.user_id


def _likely(scope: Scope, needed: int, *, is_counted: bool = True) -> tuple[list[str], int] | None:
    """Users that include the first `needed` ones, and the number of all, 0 if not counted; None if days are not
    enough.
    """
    start, stop = clamp(scope.start), clamp(scope.end + TICK)
    [whole], _ = split(start, stop, [USER_DAYS.unit])
    # A range of whole days gives the answer at once, so that bounds are no help.
    if whole in ([], [(start, stop)]) or needed > _NEAR_THE_TOP:
        return None
    limit = 2 * needed + _NEAR_THE_TOP
    params = {**days_in_range(scope, whole[0]), "limit": limit}
    sql = Template(_BOUNDS).substitute(
        of_operation=condition(scope.operation), users="count() OVER ()" if is_counted else "toUInt64(0)"
    )
    bounds = client.query(sql, params, row=_Bounds, name="users.bounds", database_settings=PLANNED)
    floor = sorted((user.lower_bound for user in bounds), reverse=True)[:needed][-1:]
    if len(bounds) == limit and bounds[-1].upper_bound >= floor[0]:
        return None
    return [user.user_id for user in bounds if user.upper_bound >= floor[0]], bounds[0].users if bounds else 0


def _ordered(scope: Scope, limit: int, offset: int) -> tuple[list[str], int]:
    names = summed(
        _Name,
        _users(scope, _NAMED),
        by=_KEYS,
        also=["cost_usd", "requests"],
        outer={"users": "count() OVER ()"},
        tail=f"{BY_COST}, user_id LIMIT {{limit:UInt64}} OFFSET {{offset:UInt64}}",
        values={"limit": limit, "offset": offset},
        name="users.page",
    )
    if names or not offset:
        return [name.user_id for name in names], names[0].users if names else 0
    return [], count_keys(_users(scope, _NAMED), _KEYS, name="users.count")


def get_user(scope: Scope, user_id: str) -> UserFigures | None:
    return _rows(scope, [user_id]).get(user_id)


def _rows(scope: Scope, names: Sequence[str]) -> dict[str, UserFigures]:
    requests, tokens = both(
        partial(_figures, scope, names, _RequestFigures), partial(_figures, scope, names, _TokenFigures)
    )
    # A user whose first request arrives between the two queries is missing until the next answer.
    return {name: UserFigures(**vars(tokens[name]) | vars(requests[name])) for name in requests.keys() & tokens.keys()}


def _figures(scope: Scope, names: Sequence[str], row: Any) -> dict[str, Any]:
    source = _users(scope, "t.user_id IN {names:Array(String)}")
    rows = summed(row, source, by=_KEYS, values={"names": list(names)}, name="users.rows")
    return {row.user_id: row for row in rows}
