"""Lists the users of a project with the figures of each in a range of time.

The names of a page are read first, from the few columns that order users; all other figures are read for these names
alone.

The rollup by day gives bounds of each user's figures: the upper bound sums the days in which the user had a request in
the range, the lower bound only the whole days. By these bounds few users can be on the page, and only their exact
figures are read. The users that have bounds are all of the range, so that the same rows count them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from string import Template
from typing import Any, TypeVar
from uuid import UUID

from analytics.clickhouse import client
from analytics.queries.distinct import USER_DAYS_IN_RANGE
from analytics.queries.operations import condition, stored_operations
from analytics.queries.parallel import both
from analytics.queries.rollup_ranges import PLANNED, TICK, USER_DAYS, USER_HOURS, clamp, same, split, totals, union


@dataclass(frozen=True)
class _RequestFigures:
    user_id: str
    requests: int
    batched: int
    errors: int
    cancelled: int
    unpriced: int
    cost_usd: Decimal
    latency_sum_ms: int
    models: list[str]
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True)
class _TokenFigures:
    user_id: str
    sessions: int
    prompt_tokens: int
    completion_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int


@dataclass(frozen=True)
class UserRow(_RequestFigures, _TokenFigures):
    """A user's figures. `sessions` counts different ones; times are of the first and the last request in the range."""


@dataclass(frozen=True)
class Users:
    """A page of users; `count` is the number of all users, and `unnamed` are the figures of requests without a user."""

    count: int
    page: Sequence[UserRow]
    unnamed: UserRow | None


@dataclass(frozen=True)
class TopUser:
    """The figures of a user in a ranking by cost."""

    user_id: str
    requests: int
    errors: int
    cost_usd: Decimal


@dataclass(frozen=True)
class _Name:
    user_id: str
    users: int


@dataclass(frozen=True)
class _Bounds:
    """The lower and the upper bounds of a user's cost and requests; `users` is the number of all users, 0 if it is not
    counted."""

    user_id: str
    lower_bound: tuple[Decimal, int]
    upper_bound: tuple[Decimal, int]
    users: int


@dataclass(frozen=True)
class _Count:
    users: int


Row = TypeVar("Row", _RequestFigures, _TokenFigures, TopUser)

_ROLLUPS = (USER_DAYS, USER_HOURS)
_KEYS = {"user_id": same("t.user_id")}
# The server plans a query column by column, which takes most of its time: two queries of half the columns,
# run at once, are faster.
_REQUEST_FIGURES = (
    "requests", "batched", "errors", "cancelled", "unpriced", "cost_usd", "latency_sum_ms", "models", "first_at",
    "last_at",
)  # fmt: skip
_TOKEN_FIGURES = ("prompt_tokens", "completion_tokens", "cache_read_tokens", "cache_write_tokens")
_TOP_FIGURES = ("requests", "errors", "cost_usd")
_SESSIONS = "uniqExactMerge(f.session_set) AS sessions"


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


@dataclass(frozen=True)
class _Scope:
    """The requests that are counted: of a project, from `start` to `end`, of one operation or, if it is empty, all."""

    project_id: UUID
    start: datetime
    end: datetime
    operation: str

    def union(self, figures: Sequence[str] = (), where: str = "1") -> tuple[str, dict[str, Any]]:
        """Returns `rollup_ranges.union` by user, and all its parameters."""
        source, params = union(
            _ROLLUPS, self.start, self.end, keys=_KEYS, figures=figures, where=where, operation=self.operation
        )
        return source, {**params, "project": self.project_id}


def list_users(
    project_id: UUID, start: datetime, end: datetime, *, limit: int, offset: int, operation: str = ""
) -> Users:
    """Returns a page of users by falling cost, then falling requests, then name."""
    scope = _Scope(project_id, start, end, operation)
    found = _likely(scope, offset + limit)
    if found is None:
        names, count = _ordered(scope, limit, offset)
        offset = 0
    else:
        names, count = found
    rows = _rows(scope, ["", *names])
    unnamed = rows.pop("", None)
    page = sorted(rows.values(), key=lambda row: (-row.cost_usd, -row.requests, row.user_id))
    return Users(count, page[offset : offset + limit], unnamed)


def top_users(project_id: UUID, start: datetime, end: datetime, *, limit: int) -> list[TopUser]:
    """Returns the first `limit` of `list_users` with a few figures, in one query or, where bounds help, in two."""
    scope = _Scope(project_id, start, end, "")
    found = _likely(scope, limit, is_counted=False)
    if found is None:
        return _top(scope, limit)
    rows = _figures(scope, found[0], TopUser, _TOP_FIGURES, totals(*_TOP_FIGURES))
    return sorted(rows.values(), key=lambda row: (-row.cost_usd, -row.requests, row.user_id))[:limit]


def _top(scope: _Scope, limit: int) -> list[TopUser]:
    source, params = scope.union(_TOP_FIGURES, "t.user_id != ''")
    sql = (
        f"SELECT f.user_id AS user_id, {totals(*_TOP_FIGURES)} FROM {source} AS f GROUP BY f.user_id"
        " ORDER BY cost_usd DESC, requests DESC, user_id LIMIT {limit:UInt64}"
    )
    return client.query(sql, params | {"limit": limit}, row=TopUser, name="users.top", database_settings=PLANNED)


def _likely(scope: _Scope, needed: int, *, is_counted: bool = True) -> tuple[list[str], int] | None:
    """Returns users that include the first `needed` ones, and the number of all, 0 if it is not counted; None when days
    are not enough."""
    start, stop = clamp(scope.start), clamp(scope.end + TICK)
    [whole], _ = split(start, stop, [USER_DAYS.unit])
    # A range of whole days gives the answer at once, so that bounds are no help.
    if whole in ([], [(start, stop)]) or needed > _NEAR_THE_TOP:
        return None
    [(first, until)] = whole
    limit = 2 * needed + _NEAR_THE_TOP
    params = {
        "project": scope.project_id,
        "operation": stored_operations(scope.operation),
        "first_day": start.date(),
        "first": first.date(),
        "until": until.date(),
        "last_day": until.date(),
        "start": start,
        "stop": stop,
        "limit": limit,
    }
    sql = Template(_BOUNDS).substitute(
        of_operation=condition(scope.operation), users="count() OVER ()" if is_counted else "toUInt64(0)"
    )
    bounds = client.query(sql, params, row=_Bounds, name="users.bounds", database_settings=PLANNED)
    floor = sorted((user.lower_bound for user in bounds), reverse=True)[:needed][-1:]
    if len(bounds) == limit and bounds[-1].upper_bound >= floor[0]:
        return None
    return [user.user_id for user in bounds if user.upper_bound >= floor[0]], bounds[0].users if bounds else 0


def _ordered(scope: _Scope, limit: int, offset: int) -> tuple[list[str], int]:
    """Returns the names of a page, and the number of all users."""
    source, params = scope.union(("cost_usd", "requests"), "t.user_id != ''")
    params |= {"limit": limit, "offset": offset}
    order = "ORDER BY sum(f.cost_usd) DESC, sum(f.requests) DESC, f.user_id LIMIT {limit:UInt64} OFFSET {offset:UInt64}"
    sql = f"SELECT f.user_id AS user_id, count() OVER () AS users FROM {source} AS f GROUP BY f.user_id {order}"
    names = client.query(sql, params, row=_Name, name="users.page", database_settings=PLANNED)
    count = names[0].users if names else _count(scope) if offset else 0
    return [name.user_id for name in names], count


def get_user(project_id: UUID, user_id: str, start: datetime, end: datetime) -> UserRow | None:
    """Returns the figures of one user, or None without any request of the user in the range."""
    return _rows(_Scope(project_id, start, end, ""), [user_id]).get(user_id)


def _rows(scope: _Scope, names: Sequence[str]) -> dict[str, UserRow]:
    token_figures, selected = (*_TOKEN_FIGURES, "session_set"), f"{totals(*_TOKEN_FIGURES)}, {_SESSIONS}"
    requests, tokens = both(
        lambda: _figures(scope, names, _RequestFigures, _REQUEST_FIGURES, totals(*_REQUEST_FIGURES)),
        lambda: _figures(scope, names, _TokenFigures, token_figures, selected),
    )
    # A user whose first request arrives between the two queries is missing until the next answer.
    return {name: UserRow(**vars(tokens[name]) | vars(requests[name])) for name in requests.keys() & tokens.keys()}


def _figures(
    scope: _Scope, names: Sequence[str], row: type[Row], figures: Sequence[str], selected: str
) -> dict[str, Row]:
    source, params = scope.union(figures, "t.user_id IN {names:Array(String)}")
    sql = f"SELECT f.user_id AS user_id, {selected} FROM {source} AS f GROUP BY f.user_id"
    values: dict[str, Any] = {**params, "names": list(names)}
    rows = client.query(sql, values, row=row, name="users.rows", database_settings=PLANNED)
    return {row.user_id: row for row in rows}


def _count(scope: _Scope) -> int:
    source, params = scope.union(where="t.user_id != ''")
    sql = f"SELECT count() AS users FROM (SELECT f.user_id FROM {source} AS f GROUP BY f.user_id)"
    return client.query(sql, params, row=_Count, name="users.count", database_settings=PLANNED)[0].users
